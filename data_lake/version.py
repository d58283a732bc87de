"""A version of a lake data set by its name: what `path`, `publish` and all who read one as a whole begin with."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import lance
import pyarrow as pa

from data_lake import lake_meta
from data_lake.edits.tags import tagged
from data_lake.files import LakePath, lake_path
from data_lake.integrity import ensure_intact
from data_lake.tables import FOLDERS, Manifest, dataset_root, open_table, read_manifest, read_meta
from errors import UserError


@dataclass(frozen=True, kw_only=True, eq=False)
class DatasetVersion:
    """info, stats: as in info.json and stats.json. tasks: text to index. episode_rows: the episodes table, in the
    order of the frames; `episodes` are the same as dicts, made when they are first asked for."""

    root: LakePath
    manifest: Manifest
    info: Mapping[str, Any]
    stats: Mapping[str, Mapping[str, Any]]
    tasks: Mapping[str, int]
    episode_rows: pa.Table

    @cached_property
    def episodes(self) -> tuple[dict[str, Any], ...]:
        return tuple(self.episode_rows.to_pylist())

    @property
    def name(self) -> str:
        return f"{self.root.name}@{self.manifest.version}"

    @property
    def cameras(self) -> tuple[str, ...]:
        return tuple(key for key, feature in self.info["features"].items() if feature["dtype"] == "video")

    @property
    def columns(self) -> dict[str, dict[str, Any]]:
        """Features that are columns of `frames`, by their dotted names."""
        return {key: feature for key, feature in self.info["features"].items() if feature["dtype"] != "video"}

    def table(self, name: str) -> lance.LanceDataset:
        return open_table(self.root, self.manifest, name)

    def ensure_intact(self) -> None:
        """Before its rows are copied elsewhere. Raises UserError LAKE-076 naming a file that is not what it was."""
        ensure_intact(self.root, self.manifest.files, *FOLDERS)


def number_of(root: LakePath, which: str) -> int:
    """`3`, or the version that a tag means. Raises UserError LAKE-184 for no such tag, LAKE-185 for what is none."""
    return int(which) if which.isdecimal() else tagged(root, which)


def open_version(lake: LakePath | str, named: str) -> DatasetVersion:
    """`NAME@3`, the version that `NAME@TAG` means, or the newest of `NAME`; a lake in words is as `--lake` takes it.

    Raises UserError LAKE-002 when the lake has none, LAKE-182 when it was given up, LAKE-184 for no such tag, LAKE-034
    and LAKE-185 for what is no name."""
    name, at, which = named.partition("@")
    root = dataset_root(lake_path(lake) if isinstance(lake, str) else lake, name)
    manifest = read_manifest(root, number_of(root, which) if at else None)
    if manifest is None:
        what = f"data set {name!r} has no version {which}" if at else f"the lake has no data set {name!r}"
        raise UserError("LAKE-002", what, where=str(root), next_step="./vlaloop ingest PATH --dataset …")
    return version_at(root, manifest)


def version_at(root: LakePath, manifest: Manifest) -> DatasetVersion:
    """The version that `manifest` is of. Raises UserError as `read_meta`."""
    meta = read_meta(root, manifest)
    tasks = lake_meta.read_table(meta[lake_meta.TASKS])
    return DatasetVersion(
        root=root,
        manifest=manifest,
        info=json.loads(meta[lake_meta.INFO]),
        stats=json.loads(meta[lake_meta.STATS]),
        tasks=dict(zip(tasks["task"].to_pylist(), tasks["task_index"].to_pylist(), strict=True)),
        episode_rows=lake_meta.read_table(meta[lake_meta.EPISODES]),
    )
