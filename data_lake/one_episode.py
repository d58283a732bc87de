"""One episode of a data set: where its rows and its videos are, where it came from, what it means."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from data_lake import lake_meta
from data_lake.asked import episodes_asked
from data_lake.overview import marks_of
from data_lake.schema import lake_name, vectors
from data_lake.version import DatasetVersion
from data_lake.view import Span, episode_of
from errors import UserError


@dataclass(frozen=True, kw_only=True, slots=True)
class VideoPart:
    """Of one camera: where its frames are in `file`, as LeRobot's video_path names it, whose size and digest follow."""

    span: Span
    file: str
    num_bytes: int
    blake3: str


@dataclass(frozen=True, kw_only=True, slots=True)
class OneEpisode:
    """Its rows are [from_index, to_index) of `frames`. meaning, extra: what its source says of it. marks: see
    `marks_of`."""

    episode_index: int
    source: str
    source_episode: int
    instruction: str
    tasks: tuple[str, ...]
    length: int
    seconds: float
    from_index: int
    to_index: int
    content_hash: str
    videos: tuple[VideoPart, ...]
    meaning: dict[str, Any]
    extra: dict[str, Any]
    marks: tuple[str, ...]


def find_episodes(
    version: DatasetVersion, *, episode: int | None = None, source_episode: str | None = None
) -> list[OneEpisode]:
    """The one with the lake's own number, or all that some source gives this number: sources number as they like.

    source_episode: a number, or `SOURCE:1` as `episodes_asked` understands it. Raises UserError LAKE-190 when there is
    none, LAKE-207 and LAKE-208 as `episodes_asked`.
    """
    if source_episode is not None and not source_episode.isdecimal():
        return describe(version, episodes_asked(version, source_episode, where="--source-episode"))
    name, wanted = ("episode_index", episode) if source_episode is None else ("source_episode", int(source_episode))
    number_E = version.episode_rows[name].to_numpy()
    places = np.flatnonzero(number_E == wanted).tolist()
    if not places:
        raise UserError(
            "LAKE-190",
            f"no episode has {name} {wanted}",
            where=f"{version.name}: {len(number_E):,} episodes, {name} from {number_E.min()} to {number_E.max()}",
            next_step=f"./vlaloop show {version.name} --episode 0",
        )
    return describe(version, places)


def describe(version: DatasetVersion, places: list[int]) -> list[OneEpisode]:
    """Those at these places of the episodes table."""
    marked = {what: set(numbers.tolist()) for what, numbers in marks_of(version).items()}
    files = _files(version)
    found = []
    for row in version.episode_rows.take(places).to_pylist():
        entry = lake_meta.entry_of(row)
        told = {each.name: entry[each.name] for each in fields(OneEpisode) if each.name in entry}
        more = {
            "tasks": tuple(entry["tasks"]),
            "seconds": entry["length"] / version.info["fps"],
            "meaning": json.loads(row["meaning"]),
            "videos": tuple(_part(version, span, files) for span in episode_of(entry).spans),
            "marks": tuple(what for what, numbers in marked.items() if entry["episode_index"] in numbers),
        }
        found.append(OneEpisode(**told | more))
    return found


def _files(version: DatasetVersion) -> dict[tuple[str, int, int], tuple[int, str]]:
    """Size and digest of each mp4, by camera and place."""
    columns = ["video_key", "chunk_index", "file_index", "file_size", "blake3"]
    rows = version.table("videos").to_table(columns=columns).to_pydict().values()
    return {(key, chunk, file): (size, digest) for key, chunk, file, size, digest in zip(*rows, strict=True)}


def _part(version: DatasetVersion, span: Span, files: dict[tuple[str, int, int], tuple[int, str]]) -> VideoPart:
    num_bytes, digest = files[span.video_key, span.chunk_index, span.file_index]
    file = version.info["video_path"].format(**asdict(span))
    return VideoPart(span=span, file=file, num_bytes=num_bytes, blake3=digest)


def numbers_of(version: DatasetVersion, episode: OneEpisode, column: str) -> np.ndarray:
    """Its rows (T, D) of a column of numbers, by its dotted name."""
    name = lake_name(column)
    rows = version.table("frames").to_table(columns=[name], offset=episode.from_index, limit=episode.length)
    rows_TD = vectors(rows[name])
    assert rows_TD is not None  # what came into the lake is numbers, and all rows are as wide
    return rows_TD
