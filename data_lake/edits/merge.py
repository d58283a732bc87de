"""Episodes of several data sets in one: a recording that several hold counts once, and keeps where it came from."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from data_lake import lake_meta
from data_lake.edits.alike import ensure_alike, features_together
from data_lake.edits.contents import Contents, damaged, read_video
from data_lake.edits.edit import Edited, ensure_whole, repeated
from data_lake.files import LakePath
from data_lake.statistics import Moments
from data_lake.tables import Manifest, dataset_root, read_meta
from data_lake.tally import add_moments
from data_lake.version import DatasetVersion, open_version
from data_lake.video import index_bytes
from data_lake.writer import Place, Writer

VideoKey = tuple[str, int, int]  # video_key, chunk_index, file_index


@dataclass(slots=True)
class _Pass:
    """One merging onto one base version. columns: of the frames, in order. held: number and content hash by
    recording. taken: rows of the episodes tables with their new numbers. reworded: what was left for a recording that
    is there under other words."""

    writer: Writer
    columns: list[str]
    tasks: dict[str, int]
    held: dict[str, tuple[int, str]]
    taken: list[pa.Table] = field(default_factory=list)
    moments: dict[str, Moments] = field(default_factory=dict)
    num_taken: int = 0
    num_held: int = 0
    num_repeated: int = 0
    reworded: list[dict[str, Any]] = field(default_factory=list)


def merge(lake: LakePath, names: Sequence[str], into: str, *, who: str) -> Edited:
    """Append the episodes of the data sets `names` (`NAME`, `NAME@3`, `NAME@tag`) to the data set `into`, new or not.

    A recording that is there already, under whatever words, is not taken again, and keeps the words that it has.

    Raises UserError LAKE-002 without one of them, LAKE-076 for a damaged file, LAKE-180 where they differ in
    meaning, LAKE-186 when a stored video is not what was recorded.
    """
    root = dataset_root(lake, into)
    sources = [open_version(lake, name) for name in names]
    for source in sources:
        source.ensure_intact()

    def attempt(writer: Writer) -> Edited | None:
        base = open_version(lake, f"{into}@{writer.base.version}") if writer.base else None
        together = [*([base] if base else []), *sources]
        ensure_alike(together)
        done = _begin(writer, base, together[0].table("frames").schema.names)
        for source in sources:
            _take(done, source)
        told = {"from": [each.name for each in sources], "num_episodes": done.num_taken, "repeated": done.num_repeated}
        told |= {"reworded": done.reworded} if done.reworded else {}
        if not done.num_taken and writer.base is not None:
            return Edited(dataset=into, version=writer.base.version, is_new=False, told=told)
        manifest = _commit(done, base, together, edit={"merge": told, "by": who})
        return manifest and Edited(dataset=into, version=manifest.version, is_new=True, told=told)

    return repeated(root, attempt)


def _begin(writer: Writer, base: DatasetVersion | None, columns: list[str]) -> _Pass:
    if base is None:
        return _Pass(writer=writer, columns=columns, tasks={}, held={})
    contents = Contents(base)
    held = {contents.recording(row): (row["episode_index"], row["content_hash"]) for row in reversed(base.episodes)}
    return _Pass(
        writer=writer,
        columns=columns,
        tasks=dict(base.tasks),
        held=held,
        num_held=len(base.episodes),
    )


def _take(done: _Pass, source: DatasetVersion) -> None:
    """Append what is new of `source`, its videos once per content."""
    table, contents = source.table("frames"), Contents(source)
    texts = {number: text for text, number in source.tasks.items()}
    columns = ["video_key", "chunk_index", "file_index", "blake3"]
    videos = source.table("videos").to_table(columns=columns).to_pylist()
    digests = {(row["video_key"], row["chunk_index"], row["file_index"]): row["blake3"] for row in videos}
    changes: list[dict[str, Any]] = []
    for row in source.episodes:
        recording = contents.recording(row)
        first, number = done.writer.num_frames, done.num_held + done.num_taken
        there, content_hash = done.held.setdefault(recording, (number, row["content_hash"]))
        if there != number:
            done.num_repeated += 1
            if content_hash != row["content_hash"]:
                done.reworded.append({"from": source.name, "episode_index": row["episode_index"], "kept": there})
            continue
        rows = table.to_table(offset=row["dataset_from_index"], limit=row["length"])
        changes.append({"row": row["episode_index"], "episode_index": number, "dataset_from_index": first})
        changes[-1][lake_meta.RECORDING] = recording
        changes[-1]["dataset_to_index"] = first + row["length"]
        for key in _video_keys(row):
            place = _video(done.writer, source, key, digests[key])
            changes[-1] |= {f"videos/{key[0]}/{name}": value for name, value in _place(place)}
        for text in row["tasks"]:
            done.tasks.setdefault(text, len(done.tasks))
        numbers = {number: done.tasks[text] for number, text in texts.items() if text in done.tasks}
        done.writer.add_frames(_renumbered(rows, done.columns, number, first, numbers))
        add_moments(done.moments, rows)
        done.num_taken += 1
    if changes:
        done.taken.append(_episodes(source, changes))


def _video_keys(row: Mapping[str, Any]) -> Iterator[VideoKey]:
    for view in lake_meta.entry_of(row)["views"].values():
        yield view["video_key"], view["chunk_index"], view["file_index"]


def _place(place: Place) -> Iterator[tuple[str, int]]:
    yield "chunk_index", place.chunk_index
    yield "file_index", place.file_index


def _video(writer: Writer, source: DatasetVersion, key: VideoKey, digest: str) -> Place:
    known = writer.place_of(key[0], digest)
    if known is not None:
        return known
    content = read_video(source, key)
    index = index_bytes(content)
    if index.digest != digest:
        raise damaged(f"{key[0]}, file {key[1]}/{key[2]}, has another BLAKE3", source.name)
    return writer.add_video(key[0], partial(bytes, content), index)


def _renumbered(rows: pa.Table, columns: Sequence[str], episode: int, first: int, tasks: Mapping[int, int]) -> pa.Table:
    """Rows of an episode with the numbers of the data set that they go to."""
    count = rows.num_rows
    numbers = {
        "episode_index": [episode] * count,
        "index": range(first, first + count),
        "task_index": [tasks[number] for number in rows["task_index"].to_pylist()],
    }
    return pa.table({name: pa.array(numbers[name], pa.int64()) if name in numbers else rows[name] for name in columns})


def _episodes(source: DatasetVersion, changes: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The rows of the episodes table that were taken, with their new numbers and places."""
    known = lake_meta.read_table(read_meta(source.root, source.manifest)[lake_meta.EPISODES])
    taken = known.take([change["row"] for change in changes])
    for name in dict.fromkeys(name for change in changes for name in change if name != "row"):
        column = lake_meta.column(name, [change.get(name) for change in changes])
        place = taken.column_names.index(name) if name in taken.column_names else None
        taken = taken.append_column(name, column) if place is None else taken.set_column(place, name, column)
    return taken


def _commit(
    done: _Pass, base: DatasetVersion | None, together: Sequence[DatasetVersion], edit: Mapping[str, Any]
) -> Manifest | None:
    meta = read_meta(base.root, base.manifest) if base else {}
    features = features_together(together)
    tables = [*([lake_meta.read_table(meta[lake_meta.EPISODES])] if base else []), *done.taken]
    episodes = pa.concat_tables(tables, promote_options="permissive")
    info = dict(together[0].info) | {
        "total_episodes": episodes.num_rows,
        "total_frames": done.writer.num_frames,
        "total_tasks": len(done.tasks),
        "splits": {"train": f"0:{episodes.num_rows}"},
        "features": features,
    }
    files = {
        lake_meta.INFO: json.dumps(info, indent=1).encode(),
        lake_meta.STATS: lake_meta.stats_with(meta, done.moments, features),
        lake_meta.TASKS: lake_meta.parquet_bytes(lake_meta.tasks_table(done.tasks)),
        lake_meta.EPISODES: lake_meta.parquet_bytes(episodes),
    }
    check = ensure_whole(done.writer.root, episodes.to_pylist(), stored=False)
    return done.writer.commit(files, num_episodes=episodes.num_rows, edit=edit, check=check)
