"""What a version of a data set holds, told at a glance: robot, meaning, lengths, tasks, cameras, tables, versions.

All of it comes from `meta` and the manifests, column by column; neither frames nor videos are read.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from data_lake.meaning import MEANT
from data_lake.schema import dimension_names
from data_lake.sources.episode import view_name
from data_lake.tables import TABLES, Manifest, read_manifest, versions
from data_lake.version import DatasetVersion
from data_lake.words import counted

FAR = 4  # times shorter or longer than the median: worth a look
NAMED = 5  # episodes that a mark names


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionLine:
    """created: seconds since 1970. notes: what changed since the version before."""

    version: int
    created: float
    num_episodes: int
    num_frames: int
    num_videos: int
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskLine:
    """same_as: an earlier task whose text differs only in case, spaces or the full stop."""

    task: str
    task_index: int
    num_episodes: int
    same_as: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CameraLine:
    """height, width in pixels. num_episodes: those that have this camera."""

    camera: str
    view: str
    height: int
    width: int
    codec: str
    num_episodes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnLine:
    """names: of its dimensions, "" for one that has none. constant: dimensions that never change over all rows."""

    column: str
    dtype: str
    names: tuple[str, ...]
    constant: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TableLine:
    table: str
    num_rows: int
    num_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """Something about `num_episodes` episodes that a person should know; `episodes` are the first of them."""

    what: str
    num_episodes: int
    episodes: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """lengths: rows of the shortest, the median and the longest episode. meanings: each distinct one with its
    `num_episodes`. sources: their labels with the episodes of each."""

    dataset: str
    version: int
    path: str
    robot: str
    embodiment: str | None
    fps: float
    num_episodes: int
    num_frames: int
    num_videos: int
    lengths: tuple[int, int, int]
    meanings: tuple[dict[str, Any], ...]
    sources: dict[str, int]
    tasks: tuple[TaskLine, ...]
    cameras: tuple[CameraLine, ...]
    columns: tuple[ColumnLine, ...]
    tables: tuple[TableLine, ...]
    marks: tuple[Mark, ...]
    versions: tuple[VersionLine, ...]


def overview(version: DatasetVersion) -> Overview:
    """Raises UserError LAKE-074 when one of its tables cannot be opened."""
    manifest, info, rows = version.manifest, version.info, version.episode_rows
    lengths_E = rows["length"].to_numpy()
    return Overview(
        dataset=version.root.name,
        version=manifest.version,
        path=str(version.root),
        robot=info["robot_type"],
        embodiment=info["vlaloop"].get("embodiment"),
        fps=info["fps"],
        num_episodes=manifest.num_episodes,
        num_frames=manifest.num_frames,
        num_videos=manifest.num_videos,
        lengths=(int(lengths_E.min()), int(np.median(lengths_E)), int(lengths_E.max())),
        meanings=tuple(_meanings(rows["meaning"])),
        sources=counts_of(rows["source"]),
        tasks=tuple(_tasks(version)),
        cameras=tuple(_camera(version, key) for key in version.cameras),
        columns=tuple(_columns(version)),
        tables=tuple(_table(version, name) for name in TABLES),
        marks=tuple(
            Mark(what=what, num_episodes=len(episodes), episodes=tuple(episodes[:NAMED].tolist()))
            for what, episodes in marks_of(version).items()
        ),
        versions=tuple(version_lines(version)),
    )


def counts_of(column: pa.ChunkedArray) -> dict[Any, int]:
    """How often each value is there, the commonest first."""
    found = column.value_counts()
    pairs = zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True)
    return dict(sorted(pairs, key=lambda pair: -pair[1]))


def marks_of(version: DatasetVersion) -> dict[str, np.ndarray]:
    """episode_index of those that something is to be said of, by what it is."""
    rows = version.episode_rows
    number_E, length_E = rows["episode_index"].to_numpy(), rows["length"].to_numpy()
    contents = rows["content_hash"].combine_chunks().dictionary_encode().indices.to_numpy()
    again_E = np.ones(len(contents), bool)
    again_E[np.unique(contents, return_index=True)[1]] = False
    found = {
        "the same recording as an earlier episode": number_E[again_E],
        f"shorter than a {FAR}th of the median": number_E[length_E * FAR < np.median(length_E)],
        f"longer than {FAR} times the median": number_E[length_E > FAR * np.median(length_E)],
        "no instruction": number_E[rows["instruction"].to_numpy() == ""],
    }
    for key in version.cameras:
        found[f"no camera {view_name(key)}"] = number_E[rows[f"videos/{key}/chunk_index"].is_null().to_numpy()]
    return {what: episodes for what, episodes in found.items() if len(episodes)}


def version_lines(version: DatasetVersion) -> Iterator[VersionLine]:
    """The versions up to this one, newest first."""
    numbers = [number for number in versions(version.root) if number <= version.manifest.version]
    found = [each for number in numbers if (each := read_manifest(version.root, number)) is not None]
    for earlier, each in reversed([*zip([None, *found[:-1]], found, strict=True)]):
        yield VersionLine(
            version=each.version,
            created=each.created,
            num_episodes=each.num_episodes,
            num_frames=each.num_frames,
            num_videos=each.num_videos,
            notes=tuple(_changes(earlier, each)),
        )


def _changes(earlier: Manifest | None, manifest: Manifest) -> Iterator[str]:
    if earlier is None:
        yield "the first"
    counts = (
        []
        if earlier is None
        else [
            ("episode", earlier.num_episodes, manifest.num_episodes),
            ("frame", earlier.num_frames, manifest.num_frames),
            ("video", earlier.num_videos, manifest.num_videos),
        ]
    )
    for name, before, after in counts:
        if before != after:
            yield f"{'+' * (after > before)}{counted(after - before, name)}"
    if manifest.edit:
        yield from _edits(manifest.edit)


def _edits(edit: Mapping[str, Any]) -> Iterator[str]:
    """What people did, and who."""
    if told := edit.get("relabel"):
        yield f"{counted(told['num_episodes'], 'episode')} relabelled as {_some(told['instructions'])}"
    if told := edit.get("merge"):
        yield f"merged from {_some(told['from'])}"
    if told := edit.get("compact"):
        yield "compacted: " + ", ".join(
            f"{name} {each['fragments_before']} -> {each['fragments']} files" for name, each in told.items()
        )
    yield f"by {edit['by']}"


def _some(texts: Sequence[str]) -> str:
    more = f", and {len(texts) - NAMED} more" if len(texts) > NAMED else ""
    return ", ".join(repr(text) if " " in text else text for text in texts[:NAMED]) + more


def _meanings(column: pa.ChunkedArray) -> Iterator[dict[str, Any]]:
    """Scenes and seeds differ by source and are left out: the same words come once."""
    found: dict[str, int] = {}
    for text, count in counts_of(column).items():
        told = json.loads(text)
        key = json.dumps({name: told.get(name) for name in MEANT})
        found[key] = found.get(key, 0) + count
    for key, count in found.items():
        yield {**json.loads(key), "num_episodes": count}


def _tasks(version: DatasetVersion) -> Iterator[TaskLine]:
    """The most practised first, of those that an episode has; others are left from edits."""
    rows = version.episode_rows["tasks"].combine_chunks()
    practised = counts_of(pa.chunked_array([rows.flatten()]))
    first: dict[str, str] = {}
    lines = []
    for text, number in sorted(version.tasks.items(), key=lambda item: item[1]):
        if text not in practised:
            continue
        earlier = first.setdefault(" ".join(text.casefold().split()).rstrip(" ."), text)
        same_as = None if earlier == text else earlier
        lines.append(TaskLine(task=text, task_index=number, num_episodes=practised[text], same_as=same_as))
    yield from sorted(lines, key=lambda line: -line.num_episodes)


def _camera(version: DatasetVersion, key: str) -> CameraLine:
    feature = version.info["features"][key]
    column = version.episode_rows[f"videos/{key}/chunk_index"]
    return CameraLine(
        camera=key,
        view=view_name(key),
        height=feature["shape"][0],
        width=feature["shape"][1],
        codec=feature["info"]["video.codec"],
        num_episodes=len(column) - column.null_count,
    )


def _columns(version: DatasetVersion) -> Iterator[ColumnLine]:
    """Those with statistics: vectors of numbers, state and action first of all."""
    for name, found in version.stats.items():
        feature: Mapping[str, Any] = version.columns[name]
        still = np.flatnonzero(np.asarray(found["min"]) == np.asarray(found["max"]))
        yield ColumnLine(
            column=name,
            dtype=feature["dtype"],
            names=dimension_names(feature["names"], len(found["min"])),
            constant=tuple(still.tolist()),
        )


def _table(version: DatasetVersion, name: str) -> TableLine:
    """Bytes of its files at this version; of videos, of the mp4s themselves, wherever Lance put them."""
    table = version.table(name)
    if name == "videos":
        num_bytes = int(table.to_table(columns=["file_size"])["file_size"].to_numpy().sum())
    else:
        files = [file for fragment in table.get_fragments() for file in fragment.metadata.files]
        num_bytes = sum(file.file_size_bytes or 0 for file in files)
    return TableLine(table=name, num_rows=table.count_rows(), num_bytes=num_bytes)
