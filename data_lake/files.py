"""Files that others may read at any moment: written whole or not at all, and hashed."""

import errno
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, overload

from blake3 import blake3
from upath import UPath

from data_lake import objects
from errors import UserError

LakePath = Path | UPath
"""A path in the lake: of a folder on this machine, or of objects in a bucket. `str` of it is what Lance opens."""

TEMPORARY = ".tmp-"  # prefix of names that a crash may leave; gc removes them
CHUNK = 1 << 20


def lake_path(text: str) -> LakePath:
    """`s3://bucket/prefix`, or a folder wherever it is named from. Raises UserError as `objects.object_path`."""
    return objects.object_path(text) if objects.is_object_uri(text) else Path(text).expanduser().resolve()


def put_if_absent(path: LakePath, payload: bytes) -> bool:
    """Create `path` with `payload`, durably, unless it exists. True if this call created it.

    The content appears at once: an object store's conditional put, on a file system a hard link.
    """
    if not isinstance(path, Path):
        return objects.create(path, payload)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _written(path, payload)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink()
    sync(path.parent)
    return True


def replace(path: LakePath, payload: bytes) -> None:
    """Set `path` to `payload`; a reader sees the old content or the new one."""
    if not isinstance(path, Path):
        objects.put(path, payload)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    os.replace(_written(path, payload), path)


def _written(path: Path, payload: bytes) -> Path:
    temporary = path.parent / f"{TEMPORARY}{uuid.uuid4().hex}"
    write_durably(temporary, payload)
    return temporary


def write_durably(path: Path, payload: bytes) -> None:
    """A new file, on disk when this returns."""
    with open(path, "xb") as file:
        file.write(payload)
        file.flush()
        os.fsync(file.fileno())


def make_folder(path: LakePath) -> None:
    """A folder and those above it; an object store has none."""
    if isinstance(path, Path):
        path.mkdir(parents=True, exist_ok=True)


def sync(path: LakePath) -> None:
    """Force a file, or the names in a folder, to disk. An object that was put is there for good."""
    if not isinstance(path, Path):
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@overload
def appearing(target: Path) -> AbstractContextManager[Path]: ...
@overload
def appearing(target: LakePath) -> AbstractContextManager[LakePath]: ...
def appearing(target: LakePath) -> AbstractContextManager[LakePath]:
    """A temporary folder that becomes `target`, durably and at once, when the block ends without an error.

    On a file system by one rename. On an object store, which has none, it stays where it is and a note, put if absent,
    says where; `appeared` reads it. Raises FileExistsError when another one was first; what was written is then
    removed.
    """
    return _renamed(target) if isinstance(target, Path) else objects.noted(target)


@contextmanager
def _renamed(target: Path) -> Iterator[Path]:
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.parent / f"{TEMPORARY}{uuid.uuid4().hex}"
    temporary.mkdir()
    try:
        yield temporary
        for folder, _, names in os.walk(temporary):
            for name in names:
                sync(Path(folder) / name)
            sync(Path(folder))
        if os.path.lexists(target):
            raise FileExistsError(target)
        try:
            os.rename(temporary, target)
        except OSError as error:
            if not target.exists():
                raise
            raise FileExistsError(target) from error  # somebody else's folder came between
        sync(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def appeared(target: LakePath) -> LakePath | None:
    """The folder that `appearing(target)` made, None while there is none."""
    if isinstance(target, Path):
        return target if target.is_dir() else None
    return objects.where_noted(target)


def link_or_copy(source: LakePath, target: LakePath) -> bool:
    """`target` with the content of `source`, which nobody will change: without a copy, and True, where the disk can.

    Both are on one file system or in one store.
    """
    if not isinstance(source, Path) and not isinstance(target, Path):
        objects.copy(source, target)
        return False
    assert isinstance(source, Path) and isinstance(target, Path), "a lake is in one place"
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
            raise
        shutil.copyfile(source, target)
        return False
    return True


def read_bytes(path: LakePath) -> bytes:
    """The content of a file as of one moment. On a store by one request: `path.open` asks twice, and finds another
    object the second time when somebody has replaced it in between."""
    return path.read_bytes() if isinstance(path, Path) else objects.get(path)


def read_json(path: LakePath, *, remedy: str) -> Any:
    """The content of a JSON file. Raises `UserError` LAKE-080 naming a file that is torn, with `remedy`."""
    try:
        return json.loads(read_bytes(path))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(
            "LAKE-080", f"the file is torn or changed: {error}", where=str(path), next_step=remedy
        ) from None


def sha256(path: LakePath, *, durable: bool = False) -> str:
    """Hex SHA-256 of a file; `durable` also forces it to disk, for what a record is about to vouch for."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    if durable:
        sync(path)
    return digest.hexdigest()


def content_digest(path: Path) -> str:
    """Hex BLAKE3 of a recording's file: records vouch by SHA-256, gigabytes of video are known by this."""
    digest = blake3()
    digest.update_mmap(path)
    return digest.hexdigest()


@overload
def tree(root: Path) -> Iterator[Path]: ...
@overload
def tree(root: LakePath) -> Iterator[LakePath]: ...
def tree(root: LakePath) -> Iterator[LakePath]:
    """Every file below `root`, in the order of their relative names."""
    if not isinstance(root, Path):
        return objects.tree(root)
    found = (Path(folder) / name for folder, _, names in os.walk(root) for name in names)
    return iter(sorted(found, key=lambda path: path.relative_to(root).as_posix()))


def name_below(root: LakePath, path: LakePath) -> str:
    """The name of `path` relative to `root`, with slashes."""
    return path.as_posix().removeprefix(f"{root.as_posix()}/")


def remove(path: LakePath) -> None:
    """A file, or a folder with all that is in it."""
    if not isinstance(path, Path):
        objects.remove(path)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
