"""LeRobot folders of v2.0, v2.1 and v3.0, the GR00T dialect included, and what our own recorder writes."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from data_lake.findings import Finding, finding
from data_lake.sources.episode import NOTHING, Episode, Feature, Part, SourceCard
from data_lake.sources.files import (
    ODD,
    Unreadable,
    describe,
    read_meta_json,
    read_parquet,
    unreadable_meta,
    well_formed,
)
from data_lake.sources.instructions import Vocabulary, instruct, language_columns
from data_lake.sources.lerobot_meta import facts, metadata_findings, splits_of, stated_statistics
from data_lake.sources.lerobot_pictures import declared_pictures, pictures_apart
from data_lake.sources.lerobot_v2 import list_v2
from data_lake.sources.lerobot_v3 import list_v3
from data_lake.sources.listing import Listed, Listing, parts_of
from data_lake.specs import AS_THE_SOURCE_SAYS, ReadSpec
from errors import UserError

ALWAYS = ("observation.state", "action", "timestamp", "frame_index", "episode_index", "index", "task_index")
"""Columns whose meaning LeRobot fixes, declared or not."""


class LeRobotFolder:
    """Reads by the layout that is there; where `codebase_version` disagrees, that is a finding."""

    FORMAT: ClassVar[str] = "lerobot"
    TAKES: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, path: Path, read: ReadSpec = AS_THE_SOURCE_SAYS) -> None:
        info = read_meta_json(path / "meta/info.json")
        version, findings = detect_version(path, info)
        info = _checked(path, info)
        self._listing = self._list(path, info, version)
        annotations = _annotations(path)
        self._words = Vocabulary(
            tasks=self._listing.tasks,
            ignore=read.ignore_tasks,
            annotations=annotations,
            wordless=self._listing.wordless,
        )
        self._parts = parts_of(self._listing, path)
        self._open: JointFile | None = None
        with well_formed(path / "meta/info.json"):
            features = {key: _feature(value) for key, value in info["features"].items()}
            self._pictured, unlike_rgb = declared_pictures(info["features"])
            stated = None if version == "v2.1" else stated_statistics(path)  # v2.1 states them by episode
            odd = metadata_findings(path, info, version, self._listing, stated)
            splits = splits_of(info)
            self.facts = facts(info, version, self._listing)
        self._card = SourceCard(
            root=path,
            format=self.FORMAT,
            version=version,
            fps=float(info["fps"]),
            robot=str(info.get("robot_type") or ""),
            features=features,
            cameras=(*self._listing.cameras, *self._pictured),
            num_episodes=len({listed.episode for listed in self._listing.episodes}),
            instruction_source=next(iter(language_columns(annotations)), "task_index"),
            declared=info["vlaloop"],
            by_format={"colour_order": "rgb", "image_orientation": "upright"},  # what a player shows
            statistics=stated or {},
            splits=splits,
            findings=(*findings, *self._listing.findings, *unlike_rgb, *odd),
        )

    @property
    def card(self) -> SourceCard:
        return self._card

    @staticmethod
    def recognises(path: Path) -> bool:
        return (path / "meta/info.json").is_file() and not is_lance(path)

    def _list(self, path: Path, info: Mapping[str, Any], version: str) -> Listing:
        if version != "v3.0":
            return list_v2(path, info)
        return list_v3(path, info, has_videos=(path / "videos").is_dir())

    @property
    def parts(self) -> Sequence[Part]:
        return [part for part, _ in self._parts]

    @property
    def shared(self) -> Mapping[str, str]:
        tasks = {f"task {number}": text for number, text in self._words.tasks.items()}
        declared = f"{self.card.version} {self._words.annotations} {self._pictured} {bool(tasks)}"
        return {"declared": declared, **tasks}

    def episodes(self, left_out: Mapping[int, int] = NOTHING) -> Iterator[Episode]:
        self._open = None
        numbers = dict.fromkeys(listed.episode for listed in self._listing.episodes)
        for place, (_, listings) in enumerate(self._parts):
            if place in left_out:
                continue
            for several in listings:
                episode = self._episode(several[0], twice=len(several) > 1, listed_numbers=numbers.keys())
                yield replace(episode, part=place, lasting=self._is_settled(episode))

    def _is_settled(self, episode: Episode) -> bool:
        """Whether neither its rows point at a task, nor its file has rows, that a longer list could still have."""
        rows, tasks = episode.rows, self._words.tasks
        if any(item.code == "LAKE-027" for item in episode.findings):
            return False
        if rows is None or not tasks:
            return True
        pointing = [name for name in ("task_index", *self._words.annotations) if name in rows.column_names]
        return all(index in tasks for name in pointing for index in rows[name].unique().to_pylist())

    def _episode(self, listed: Listed, *, twice: bool, listed_numbers: Collection[int]) -> Episode:
        number = listed.episode
        file = None if listed.data is None else self.card.relative(listed.data)
        findings = [*listed.findings]
        if twice:
            findings.append(finding("LAKE-026", episode=number))
        rows, instruction, views = None, "", {**listed.views}
        try:
            table, unlisted = self._rows(listed, listed_numbers)
            findings += unlisted
            table, pictures, absent = pictures_apart(
                table, self._pictured, believed=bool(self.card.features), path=listed.data or self.card.root
            )
            views |= pictures
            findings += [finding("LAKE-195", camera=key, episode=number, file=file) for key in absent]
            table, left_out = self._declared(table)
            if left_out:
                findings.append(finding("LAKE-063", ", ".join(left_out), episode=number, file=file))
            rows, instruction, odd = instruct(table, listed.tasks, self._words, number)
            findings += odd
        except Unreadable as error:
            findings.append(finding(error.code, error.detail, episode=number, file=file))
        except ODD as error:
            findings.append(finding("LAKE-062", describe(error), episode=number, file=file))
        return Episode(
            source_episode=number,
            rows=rows,
            instruction=instruction,
            views=views,
            file=file,
            length=listed.length,
            extra=listed.extra,
            statistics=listed.statistics,
            findings=tuple(findings),
        )

    def _rows(self, listed: Listed, listed_numbers: Collection[int]) -> tuple[pa.Table, list[Finding]]:
        """The rows whose `episode_index` is this episode's, and what else its file holds (said once a file).

        The file read last stays in memory: v3.0 keeps many episodes in one.
        """
        if listed.data is None:
            raise Unreadable("LAKE-009")
        if self.card.version != "v3.0":
            return read_parquet(listed.data), []
        findings = []
        if self._open is None or self._open.path != listed.data:
            self._open = JointFile.read(listed.data)
            file = self.card.relative(listed.data)
            strange = sorted(self._open.rows_of.keys() - set(listed_numbers))
            findings = [finding("LAKE-027", episode=number, file=file) for number in strange]
        return self._open.episode(listed.episode), findings

    def _declared(self, table: pa.Table) -> tuple[pa.Table, list[str]]:
        """The columns that the source declares, and the names of others: episodes must have the same columns."""
        known = {*self.card.features, *ALWAYS, *self._words.annotations}
        odd = [name for name in table.column_names if name not in known] if self.card.features else []
        return table.drop_columns(odd), odd


@dataclass(frozen=True, kw_only=True, slots=True)
class JointFile:
    """A data file of v3.0. rows_of: by episode, the numbers of its rows in their order."""

    path: Path
    table: pa.Table
    rows_of: Mapping[int, np.ndarray]

    @classmethod
    def read(cls, path: Path) -> "JointFile":
        """Raises Unreadable."""
        table = read_parquet(path)
        return cls(path=path, table=table, rows_of=rows_by_owner(table))

    def episode(self, number: int) -> pa.Table:
        rows = self.rows_of.get(number, np.empty(0, np.int64))
        if are_one_run(rows):
            return self.table.slice(rows[0], len(rows))
        return self.table.take(rows)


def rows_by_owner(table: pa.Table) -> dict[int, np.ndarray]:
    """By episode, the numbers of the rows whose `episode_index` it is, in their order. Raises Unreadable."""
    if "episode_index" not in table.column_names:
        raise Unreadable("LAKE-025", "episode_index")
    if table["episode_index"].null_count or not pa.types.is_integer(table["episode_index"].type):
        raise Unreadable("LAKE-019", f"episode_index is {table['episode_index'].type}, or has nulls")
    owners = table["episode_index"].to_numpy()
    order = np.argsort(owners, kind="stable")
    numbers, starts = np.unique(owners[order], return_index=True)
    return dict(zip(numbers.tolist(), np.split(order, starts[1:]), strict=True)) if len(owners) else {}


def are_one_run(rows: np.ndarray) -> bool:
    return len(rows) > 0 and bool(rows[-1] - rows[0] == len(rows) - 1)


def is_lance(path: Path) -> bool:
    """Whether meta/info.json says that rows and videos are in Lance tables."""
    try:
        return read_meta_json(path / "meta/info.json").get("storage_format") == "lance"
    except UserError:  # told when the folder is opened
        return False


def detect_version(root: Path, info: Mapping[str, Any]) -> tuple[str, list[Finding]]:
    """The version whose layout is there, and a finding when the version string says another.

    Raises UserError LAKE-004 when no list of episodes is there.
    """
    named = info.get("codebase_version")
    v3 = any((root / "meta/episodes").glob("chunk-*/*.parquet"))
    v2 = (root / "meta/episodes.jsonl").is_file()
    if not v3 and not v2:
        raise unreadable_meta(root / "meta", "without episodes.jsonl (v2) and episodes/chunk-*/*.parquet (v3.0)")
    if v3:
        layout = "v3.0"
    else:
        layout = "v2.1" if (root / "meta/episodes_stats.jsonl").is_file() else "v2.0"
    if named is None:
        return layout, [finding("LAKE-060", f"laid out as {layout}", file="meta/info.json")]
    if str(named).removeprefix("v").split(".")[0] != layout[1]:
        return layout, [finding("LAKE-040", f"it says {named!r}, laid out as {layout}", file="meta/info.json")]
    return str(named) if str(named) in ("v2.0", "v2.1", "v3.0") else layout, []


def _checked(root: Path, info: dict[str, Any]) -> dict[str, Any]:
    """`info` with features and a usable rate. Raises UserError LAKE-004."""
    path = root / "meta/info.json"
    fps = info.get("fps")
    if not isinstance(fps, int | float) or isinstance(fps, bool) or not 0 < fps < math.inf:
        raise unreadable_meta(path, f"without a rate (fps is {fps!r})")
    features = info.get("features", {})
    if not isinstance(features, dict) or not all(isinstance(value, dict) for value in features.values()):
        raise unreadable_meta(path, "without a usable `features`")
    declared = info.get("vlaloop") or {}
    if not isinstance(declared, dict):
        raise unreadable_meta(path, "without a usable `vlaloop` (an object)")
    return {**info, "features": features, "vlaloop": declared}


def _feature(value: Mapping[str, Any]) -> Feature:
    shape = value.get("shape") or ()
    return Feature(dtype=str(value.get("dtype")), shape=tuple(int(size) for size in shape), names=value.get("names"))


def _annotations(root: Path) -> tuple[str, ...]:
    """Columns of task indices that GR00T's meta/modality.json declares."""
    if not (root / "meta/modality.json").is_file():
        return ()
    declared = read_meta_json(root / "meta/modality.json").get("annotation")
    return tuple(f"annotation.{name}" for name in declared) if isinstance(declared, dict) else ()
