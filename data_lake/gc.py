"""Garbage: what neither a record, nor a live lease, nor the snapshot of an unfinished run reaches."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from data_lake.files import TEMPORARY, LakePath, appeared, tree
from data_lake.files import remove as remove_path
from data_lake.given_up import given_up
from data_lake.lease import newest
from data_lake.runs import runs
from data_lake.store import RECORD, read_record

RESERVED = ("datasets", "runs", "registry")  # folders of the lake that hold no slots


@dataclass(frozen=True, kw_only=True, slots=True)
class Garbage:
    """A file or folder that nothing reaches, why, and how many bytes it frees."""

    path: LakePath
    why: str
    num_bytes: int


def find_garbage(lake: LakePath, *, grace_s: float, mirror: Path | None = None) -> list[Garbage]:
    """What `gc` would remove: nothing younger than `grace_s` seconds by its newest file.

    Kept: what a record vouches for and the record, its leases and its revocation; the attempts of a slot whose
    lease lives, or that an unfinished run touched and nobody has finished; every data set version that was not given
    up, or that something needs all the same; all files of data sets while an ingest lives.
    mirror: of a lake on an object store; what the lake holds can be fetched again.
    """
    needed = {(stage, name) for run in runs(lake) if not run.is_finished() for stage, name in run.slots()}
    found = [*_left_in_slots(lake, needed), *_left_in_datasets(lake, grace_s), *_temporary(lake)]
    if mirror is not None:
        found += _left_in_mirror(lake, mirror, needed)
    return [each for each in found if _age_s(each.path) >= grace_s]


def remove(garbage: list[Garbage]) -> int:
    """Delete what `find_garbage` found; returns the bytes freed."""
    for each in garbage:
        remove_path(each.path)
    return sum(each.num_bytes for each in garbage)


def _left_in_slots(lake: LakePath, needed: set[tuple[str, str]]) -> Iterator[Garbage]:
    for leases in sorted(lake.glob("*/*/leases")):
        slot = leases.parent
        stage, name = slot.parent.name, slot.name
        held = newest(slot / "leases")
        if stage in RESERVED or (held is not None and not held.is_gone()):
            continue
        if not (slot / RECORD).exists():
            if (stage, name) not in needed:
                yield _garbage(slot, "unfinished, and no run waits for it")
            continue
        vouched = _vouched_attempts(slot)
        for attempt in sorted(slot.glob("attempts/*")):
            if attempt.name not in vouched:
                yield _garbage(attempt, "an attempt that the record does not name")


def _left_in_mirror(lake: LakePath, mirror: Path, needed: set[tuple[str, str]]) -> Iterator[Garbage]:
    for slot in sorted(mirror.glob("*/*")):
        there = lake / slot.parent.name / slot.name
        held = newest(there / "leases")
        if held is not None and not held.is_gone():
            continue
        if (there / RECORD).exists():
            yield _garbage(slot, "a copy of what the lake holds")
        elif (slot.parent.name, slot.name) not in needed:
            yield _garbage(slot, "unfinished, and no run waits for it")


def _vouched_attempts(slot: LakePath) -> set[str]:
    """Attempts that hold files of the record. A record without files vouches for the attempt that it names."""
    record = read_record(slot / RECORD)
    held = {name.split("/")[1] for name in record["files"] if name.startswith("attempts/")}
    return held or {str(record["attempt"])}


def _left_in_datasets(lake: LakePath, grace_s: float) -> Iterator[Garbage]:
    """What crashed writers left in tables. An ingest that lives may have written any of it."""
    roots = sorted((lake / "datasets").glob("*"))
    holders = [newest(leases) for leases in lake.glob("ingest/*/leases")]
    if not roots or any(held is not None and not held.is_gone() for held in holders):
        return
    from data_lake.edits.forget import pins  # these load Lance, which most lakes' garbage does not need
    from data_lake.orphans import orphans

    for root in roots:
        for path in orphans(root, older_than_s=grace_s, needed=given_up(root) & pins(lake, root.name).keys()):
            yield _garbage(path, "no version of the data set reaches it")
        if not isinstance(root, Path):
            yield from _unnoted(root)


def _unnoted(root: LakePath) -> Iterator[Garbage]:
    """Versions whose publishing a crash ended before its note was put; on a file system they are temporary folders."""
    for target in sorted(root.glob("published/*")):
        whole = appeared(target)
        for place in sorted(target.iterdir()):
            if place.is_dir() and place != whole:
                yield _garbage(place, "left by publishing that did not finish")


def _temporary(lake: LakePath) -> Iterator[Garbage]:
    if not isinstance(lake, Path):
        return  # objects are put under their own names
    for path in sorted(lake.rglob(f"{TEMPORARY}*")):
        yield _garbage(path, "left by a write that did not finish")


def _garbage(path: LakePath, why: str) -> Garbage:
    files = tree(path) if path.is_dir() else iter((path,))
    return Garbage(path=path, why=why, num_bytes=sum(file.stat().st_size for file in files))


def _age_s(path: LakePath) -> float:
    files = list(tree(path)) if path.is_dir() else [path]
    if isinstance(path, Path):
        files.append(path)  # a folder that is empty has an age, too
    return time.time() - max((file.stat().st_mtime for file in files), default=0.0)
