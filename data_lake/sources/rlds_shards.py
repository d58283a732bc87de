"""The shards of an RLDS data set as dataset_info.json lists them, and the numbers of their episodes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data_lake.findings import Finding, finding
from data_lake.sources.files import unreadable_meta
from data_lake.sources.listing import fill
from errors import UserError

DEFAULT_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
_VERSION = re.compile(r"\d+\.\d+\.\d+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Shard:
    """first: number of its first episode, counted through all shards of all splits as they are listed, whether
    their files are there or not: a number stays when a file is added or lost."""

    path: Path
    split: str
    first: int
    num_episodes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Shards:
    """shards: to be read. num_listed: episodes of all splits."""

    shards: tuple[Shard, ...]
    num_listed: int
    findings: tuple[Finding, ...]

    @property
    def splits(self) -> dict[str, range]:
        """The episodes of each split that is read: one run of numbers."""
        found: dict[str, range] = {}
        for shard in self.shards:
            begin = found[shard.split].start if shard.split in found else shard.first
            found[shard.split] = range(begin, shard.first + shard.num_episodes)
        return found


def is_version(path: Path) -> bool:
    """Whether TFDS wrote a version of a data set here."""
    return (path / "dataset_info.json").is_file() and (path / "features.json").is_file()


def versions_below(path: Path) -> list[Path]:
    """`1.0.0` and its like in the folder of a data set."""
    if not path.is_dir():
        return []
    return sorted(child for child in path.iterdir() if _VERSION.fullmatch(child.name) and is_version(child))


def version_folder(path: Path) -> Path:
    """`path`, or the only version in it. Raises UserError LAKE-002 when there are several."""
    versions = [] if is_version(path) else versions_below(path)
    if len(versions) > 1:
        raise UserError(
            "LAKE-002",
            f"the data set has several versions: {', '.join(version.name for version in versions)}",
            where=str(path),
            done="nothing was read",
            next_step="name the folder of one of them",
        )
    return versions[0] if versions else path


def list_shards(root: Path, info: Mapping[str, Any]) -> Shards:
    """Every split of which a file is there; if none has any, all of them. Raises UserError LAKE-004, or one of ODD."""
    splits: dict[str, list[Shard]] = {}
    first = 0
    for split in info["splits"]:
        splits[split["name"]] = shards = _shards_of(root, info, split, first)
        first += sum(shard.num_episodes for shard in shards)
    there = {name for name, shards in splits.items() if any(shard.path.is_file() for shard in shards)}
    findings = [
        finding("LAKE-110", f"{name}, {sum(shard.num_episodes for shard in shards)} episodes")
        for name, shards in splits.items()
        if there and shards and name not in there
    ]
    listed = {shard.path for shards in splits.values() for shard in shards}
    strange = sorted(path.name for path in root.glob("*.tfrecord*") if path not in listed)
    findings += [finding("LAKE-116", file=name) for name in strange]
    version = str(info.get("version", root.name))
    if _VERSION.fullmatch(root.name) and version != root.name:
        findings.append(finding("LAKE-119", f"it says {version}, its folder {root.name}", file="dataset_info.json"))
    kept = [shard for name, shards in splits.items() if not there or name in there for shard in shards]
    return Shards(shards=tuple(kept), num_listed=first, findings=tuple(findings))


def _shards_of(root: Path, info: Mapping[str, Any], split: Mapping[str, Any], first: int) -> list[Shard]:
    """The shards of a split that hold episodes."""
    lengths = [int(length) for length in split["shardLengths"]]
    template = split.get("filepathTemplate") or DEFAULT_TEMPLATE
    shards = []
    for number, length in enumerate(lengths):
        index, count = f"{number:05d}", f"{len(lengths):05d}"
        fields = {
            "DATASET": info["name"],
            "SPLIT": split["name"],
            "FILEFORMAT": info.get("fileFormat", "tfrecord"),
            "SHARD_INDEX": index,
            "NUM_SHARDS": count,
            "SHARD_X_OF_Y": f"{index}-of-{count}",
        }
        name = fill(template, fields)
        if name is None or length < 0:
            raise unreadable_meta(root / "dataset_info.json", f"without usable shards of split {split['name']!r}")
        if length:
            shards.append(Shard(path=root / name, split=split["name"], first=first, num_episodes=length))
        first += length
    return shards
