"""A lake data set: three Lance tables (frames, videos, meta) that change together, or not at all.

A manifest, put if absent, pins one version of each; readers open tables only at a manifest's vector. What makes one
is `data_lake/writer.py`.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import lance

from data_lake.files import LakePath, read_bytes
from data_lake.given_up import expired, given_up
from data_lake.integrity import RESTORE, Digests, ensure_intact
from data_lake.names import ensure_name
from data_lake.objects import answering
from data_lake.schema import META, VIDEOS
from data_lake.sealed import digest_of, numbered, sealed
from errors import UserError

TABLES = ("frames", "videos", "meta")
FOLDERS = tuple(f"{name}.lance" for name in TABLES)


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """One version of a data set. vector: the Lance version of each table. created: seconds since 1970. edit: what was
    done to the version before and `by` whom, `{"relabel": {…}, "by": …}`; None: episodes were added. files: what the
    tables consist of."""

    version: int
    vector: dict[str, int]
    num_episodes: int
    num_frames: int
    num_videos: int
    created: float
    files: Digests
    edit: Mapping[str, Any] | None = None

    def as_bytes(self) -> bytes:
        """The manifest's file: its fields, and their digest."""
        return sealed(asdict(self))


def dataset_root(lake: LakePath, name: str) -> LakePath:
    """Where the data set `name` is. Raises UserError LAKE-034 for a name that could lead anywhere else."""
    ensure_name(name)
    return lake / "datasets" / name


def manifest_path(root: LakePath, version: int) -> LakePath:
    return root / "manifests" / f"{version:06d}.json"


def versions(root: LakePath) -> list[int]:
    """Every version of the data set that was not given up, oldest first."""
    return sorted(numbered(root / "manifests").keys() - given_up(root))


def read_manifest(root: LakePath, version: int | None = None) -> Manifest | None:
    """That version's manifest, or the newest; None when there is none.

    Raises UserError LAKE-074 when it is no manifest, LAKE-182 when that version was given up.
    """
    if version is None:
        known = versions(root)
        if not known:
            return None
        version = known[-1]
    if not manifest_path(root, version).is_file():
        return None
    if version in given_up(root):
        raise expired(root, version)
    return manifest_at(manifest_path(root, version))


def manifest_at(path: LakePath) -> Manifest:
    """Of a version that may have been given up. Raises UserError LAKE-074 when it is no manifest, or a changed one."""
    try:
        found = json.loads(read_bytes(path))
        digest = found.pop("digest")
        manifest = Manifest(**found)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError("LAKE-074", "not a manifest", where=str(path), next_step=RESTORE) from error
    if digest != digest_of(found):
        raise UserError("LAKE-074", "the manifest is damaged", where=str(path), next_step=RESTORE)
    return manifest


NEEDED = {"videos": VIDEOS.names, "meta": META.names}


def open_table(root: LakePath, manifest: Manifest, name: str) -> lance.LanceDataset:
    """The table `name` as of `manifest`. Raises UserError LAKE-074 when that is gone, LAKE-076 when the list of its
    files is damaged, LAKE-182 when it was given up, Transient when the store does not answer."""
    path = root / f"{name}.lance"
    where = f"{path} at version {manifest.vector[name]} (data set version {manifest.version})"
    try:
        with answering(root):
            ensure_intact(root, manifest.files, f"{name}.lance/_versions")  # Lance panics on some changed bytes
            table = lance.dataset(str(path), version=manifest.vector[name])
    except (ValueError, OSError, UserError) as error:
        if manifest.version in given_up(root):
            raise expired(root, manifest.version) from error
        if isinstance(error, UserError):
            raise
        raise UserError("LAKE-074", f"the table {name} cannot be opened", where=where, next_step=RESTORE) from error
    if absent := [column for column in NEEDED.get(name, ()) if column not in table.schema.names]:
        what = f"the table {name} is of another release: it has no column {absent[0]}"
        raise UserError("LAKE-074", what, where=where, next_step=RESTORE)
    return table


def read_meta(root: LakePath, manifest: Manifest) -> dict[str, bytes]:
    """The files of LeRobot's meta/ by their path below it. Raises UserError as `ensure_intact` and `open_table`."""
    ensure_intact(root, manifest.files, "meta.lance")
    table = open_table(root, manifest, "meta").to_table()
    return dict(zip(table["path"].to_pylist(), table["data"].to_pylist(), strict=True))
