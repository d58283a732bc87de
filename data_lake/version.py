"""A version of a lake data set by its name: what `path`, `publish` and all who read one as a whole begin with."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance

from data_lake import lake_meta
from data_lake.edits.tags import tagged
from data_lake.tables import Manifest, dataset_root, open_table, read_manifest, read_meta
from errors import UserError


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetVersion:
    """info: as in info.json. tasks: text to index. episodes: rows of the episodes table, in the order of the frames."""

    root: Path
    manifest: Manifest
    info: Mapping[str, Any]
    tasks: Mapping[str, int]
    episodes: tuple[dict[str, Any], ...]

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


def number_of(root: Path, which: str) -> int:
    """`3`, or the version that a tag means. Raises UserError LAKE-184 for no such tag, LAKE-185 for what is none."""
    return int(which) if which.isdecimal() else tagged(root, which)


def open_version(lake: Path, named: str) -> DatasetVersion:
    """`NAME@3`, the version that `NAME@TAG` means, or the newest of `NAME`. Raises UserError LAKE-002 when the lake has
    none, LAKE-182 when it was given up, LAKE-184 for no such tag, LAKE-034 and LAKE-185 for what is no name."""
    name, at, which = named.partition("@")
    root = dataset_root(lake, name)
    manifest = read_manifest(root, number_of(root, which) if at else None)
    if manifest is None:
        what = f"data set {name!r} has no version {which}" if at else f"the lake has no data set {name!r}"
        raise UserError("LAKE-002", what, where=str(root), next_step="./vlaloop ingest PATH --dataset …")
    meta = read_meta(root, manifest)
    tasks = lake_meta.read_table(meta[lake_meta.TASKS])
    return DatasetVersion(
        root=root,
        manifest=manifest,
        info=json.loads(meta[lake_meta.INFO]),
        tasks=dict(zip(tasks["task"].to_pylist(), tasks["task_index"].to_pylist(), strict=True)),
        episodes=tuple(lake_meta.read_table(meta[lake_meta.EPISODES]).to_pylist()),
    )
