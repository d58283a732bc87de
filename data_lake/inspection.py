"""What stands in a lake data set although no episode may have it: values, words and pictures, seen with every read.

Ingest keeps all of it out; a data set of an earlier release, or one whose disk lies, may hold it nonetheless.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from data_lake import lake_meta
from data_lake.checks import broken_frames
from data_lake.findings import Finding, finding
from data_lake.schema import vectors
from data_lake.sources.instructions import fault
from data_lake.stored_videos import Place, Videos, open_videos
from data_lake.tally import ranges
from data_lake.trial import Trial, decode_all
from data_lake.video import VideoUnreadable, sample_entry
from errors import UserError

Episodes = Sequence[Mapping[str, Any]]
"""Rows of the episodes table, in the order of the frames."""


def inspect(
    tables: Mapping[str, lance.LanceDataset], info: Mapping[str, Any], episodes: Episodes, *, deep: bool, workers: int
) -> Iterator[Finding]:
    """info: info.json. deep: also decode every frame, by `workers` threads."""
    yield from _not_finite(tables["frames"], episodes)
    yield from _wordless(Path(tables["frames"].uri).parent.name, episodes)
    shown = _shown(episodes)
    videos = open_videos(tables["videos"].uri, tables["videos"].version)
    yield from _sizes(videos, info, shown)
    if deep:
        yield from _broken(videos, shown, float(info["fps"]), workers)


def _wordless(dataset: str, episodes: Episodes) -> Iterator[Finding]:
    """What is no instruction; each names all of its kind, since one relabelling mends them."""
    found = [
        finding(wrong[0], wrong[1], episode=episode["episode_index"])
        for episode in episodes
        for text in dict.fromkeys((episode["instruction"], *episode["tasks"]))
        if (wrong := fault(text)) is not None
    ]
    numbers: dict[str, dict[int, None]] = {}
    for each in found:
        numbers.setdefault(each.code, {})[each.episode or 0] = None
    which = {code: ranges(np.array(list(those))).replace(", ", ",") for code, those in numbers.items()}
    for each in found:
        yield replace(
            each, fix=f"./vlaloop relabel {dataset} --episode {which[each.code]} --instruction 'what is done'"
        )


def _not_finite(frames: lance.LanceDataset, episodes: Episodes) -> Iterator[Finding]:
    """LAKE-016 once per episode and column, for the first such row."""
    begins = [episode["dataset_from_index"] for episode in episodes]
    names = [column.name for column in frames.schema if _is_floating(column.type)]
    said, first = set[tuple[int, str]](), 0
    for batch in frames.to_batches(columns=names):
        for name in names:
            rows_TD = vectors(pa.chunked_array([batch[name]]))
            wrong_T = np.ones(batch.num_rows, bool) if rows_TD is None else ~np.isfinite(rows_TD).all(axis=1)
            for row in np.flatnonzero(wrong_T).tolist():
                place = max(bisect_right(begins, first + row) - 1, 0)
                if (place, name) not in said:
                    said.add((place, name))
                    number, at = episodes[place]["episode_index"], first + row - begins[place]
                    detail = f"{name} is {batch[name][row].as_py()} in row {at}"
                    yield finding("LAKE-016", detail, episode=number, row=at, file="frames.lance")
        first += batch.num_rows


def _is_floating(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind.value_type if pa.types.is_fixed_size_list(kind) else kind)


Shown = Mapping[Place, Sequence[tuple[int, float, float]]]
"""By mp4: (episode, from_s, to_s) of those that it shows."""


def _shown(episodes: Episodes) -> Shown:
    shown: dict[Place, list[tuple[int, float, float]]] = {}
    for episode in episodes:
        for view in lake_meta.entry_of(episode)["views"].values():
            place = (view["video_key"], view["chunk_index"], view["file_index"])
            shown.setdefault(place, []).append((episode["episode_index"], view["from_s"], view["to_s"]))
    return shown


def _sizes(videos: Videos, info: Mapping[str, Any], shown: Shown) -> Iterator[Finding]:
    """LAKE-233 for each episode whose video is not of the size that info.json says, as every reader believes."""
    boxes = videos.table.to_table(columns=["moov_offset", "moov_size"]).to_pylist()
    for place, claims in shown.items():
        row, feature = videos.row_of.get(place), info["features"].get(place[0])
        if row is None or feature is None:
            continue
        try:
            with videos.open(row, f"camera {place[0]}") as file:
                file.seek(boxes[row]["moov_offset"])
                _, width, height = sample_entry(file.read(boxes[row]["moov_size"]))
        except (UserError, OSError, ValueError, VideoUnreadable):
            continue  # said by whoever reads its bytes
        if [height, width] != feature["shape"][:2]:
            detail = f"{width} x {height}, {feature['shape'][1]} x {feature['shape'][0]} in info.json"
            for episode, *_ in claims:
                yield finding("LAKE-233", detail, episode=episode, camera=place[0], file=f"videos.lance row {row}")


def _broken(videos: Videos, shown: Shown, fps: float, workers: int) -> Iterator[Finding]:
    """As of a source's videos: LAKE-153, and LAKE-152 where nothing can be decoded here."""
    rows = {place: videos.row_of[place] for place in shown if place in videos.row_of}
    with ThreadPoolExecutor(max(1, workers)) as pool:
        trials = pool.map(partial(_tried, videos), rows.values())
        for (place, row), trial in zip(rows.items(), trials, strict=True):
            if trial.absent:
                yield finding("LAKE-152", trial.absent, camera=place[0], file=f"videos.lance row {row}")
            for episode, from_s, to_s in shown[place]:
                where = {"episode": episode, "camera": place[0], "file": f"videos.lance row {row}"}
                yield from broken_frames(trial, from_s, to_s, fps, where)


def _tried(videos: Videos, row: int) -> Trial:
    try:
        with videos.open(row, f"row {row}") as file:
            return decode_all(file)
    except (UserError, OSError, ValueError):
        return Trial()  # said by whoever reads its bytes
