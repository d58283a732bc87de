"""Files that a record vouches for, held to their SHA-256 before anything is made of them.

Once per process and file: a file of this machine that nobody touched since is not read again.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from data_lake.files import LakePath, sha256
from data_lake.objects import TOGETHER
from data_lake.refs import DatasetRef, Ref, SourceRef
from data_lake.store import RECORD, read_record
from errors import UserError

SMALL_FILE = 16 << 20
SMALL_SLOT = 256 << 20
"""Bytes up to which the data of tables are read, too: a fraction of a second. Those of larger ones `show` reads."""

_seen: dict[tuple[str, int, int, int, int], str] = {}
"""(path, inode, size, mtime_ns, ctime_ns) to the SHA-256 that this process found there; of an object, its path."""


def require_files(lake: LakePath, refs: Sequence[Ref]) -> None:
    """See that what `refs` stand for is still there, by sizes, and what is small of it by content.

    Raises `UserError` LAKE-081 naming what is not there, LAKE-244 naming what is other than was made."""
    for ref in refs:
        if isinstance(ref, SourceRef):  # outside of the lake
            continue
        slot = "/".join(ref.uri.split("/")[:2])
        stage = slot.partition("/")[0]
        expected = read_record(lake / slot / RECORD)["files"] if (lake / slot / RECORD).exists() else {}
        sizes = {f"{slot}/{file}": each["size"] for file, each in expected.items()}
        lost = [file for file, size in sizes.items() if not _has_size(lake / file, size)]
        folders = [ref.uri, *([f"datasets/{ref.dataset}"] if isinstance(ref, DatasetRef) else [])]
        lost += [folder for folder in folders if not (lake / folder).exists()]
        if lost:
            raise UserError(
                "LAKE-081",
                f"files that {stage} made are gone or cut short: {len(lost)}, the first is {lost[0]}",
                where=str(lake / lost[0]),
                next_step=f'restore them, or the same command with --rebuild {stage} --why "files lost"',
            )
        if wrong := _changed(lake / slot, expected):
            raise UserError(
                "LAKE-244",
                f"files are not what {stage} made: {len(wrong)}, the first is {wrong[0]}",
                where=str(lake / slot / wrong[0]),
                next_step=f'restore them, or the same command with --rebuild {stage} --why "files damaged"',
            )


def _has_size(path: LakePath, size: int) -> bool:
    return path.exists() and path.stat().st_size == size


def content_sha256(path: LakePath) -> str:
    """Hex SHA-256 of a file that nobody changes any more."""
    key = (str(path), 0, 0, 0, 0)
    if isinstance(path, Path):
        stat = path.stat()
        key = (str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    if key not in _seen:
        _seen[key] = sha256(path)
    return _seen[key]


def read_before_use(files: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Of a slot's `files` ({name: {"size", "sha256"}}) those whose content is looked at: all where they are few bytes,
    else all but the data of tables."""
    if sum(each["size"] for each in files.values()) <= SMALL_SLOT:
        return list(files)
    return [name for name, each in files.items() if each["size"] <= SMALL_FILE and ".lance/data/" not in name]


def _changed(root: LakePath, files: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Names below `root` of those `files` that are looked at and have another content."""
    names = read_before_use(files)
    with ThreadPoolExecutor(TOGETHER) as pool:
        digests = pool.map(lambda name: content_sha256(root / name), names)
        return [name for name, digest in zip(names, digests, strict=True) if digest != files[name]["sha256"]]
