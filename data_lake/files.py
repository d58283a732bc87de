"""Files that others may read at any moment: written whole or not at all, and hashed."""

import errno
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from blake3 import blake3

from errors import UserError

TEMPORARY = ".tmp-"  # prefix of names that a crash may leave; gc removes them
CHUNK = 1 << 20


def put_if_absent(path: Path, payload: bytes) -> bool:
    """Create `path` with `payload`, durably, unless it exists. True if this call created it.

    The content appears at once: an object store's conditional put, on a file system a hard link.
    """
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


def replace(path: Path, payload: bytes) -> None:
    """Set `path` to `payload`; a reader sees the old content or the new one."""
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


def sync(path: Path) -> None:
    """Force a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """A temporary folder that becomes `target`, durably and by one rename, when the block ends without an error.

    Raises FileExistsError when `target` is there by then; what was written is then removed. On an object store, which
    has no rename, a marker put if absent would take its place.
    """
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


def link_or_copy(source: Path, target: Path) -> bool:
    """`target` with the content of `source`, which nobody will change: without a copy, and True, where the disk can."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK):
            raise
        shutil.copyfile(source, target)
        return False
    return True


def read_json(path: Path, *, remedy: str) -> Any:
    """The content of a JSON file. Raises `UserError` LAKE-080 naming a file that is torn, with `remedy`."""
    try:
        return json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(
            "LAKE-080", f"the file is torn or changed: {error}", where=str(path), next_step=remedy
        ) from None


def sha256(path: Path, *, durable: bool = False) -> str:
    """Hex SHA-256 of a file; `durable` also forces it to disk, for what a record is about to vouch for."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
        if durable:
            os.fsync(file.fileno())
    return digest.hexdigest()


def content_digest(path: Path) -> str:
    """Hex BLAKE3 of a recording's file: records vouch by SHA-256, gigabytes of video are known by this."""
    digest = blake3()
    digest.update_mmap(path)
    return digest.hexdigest()


def tree(root: Path) -> Iterator[Path]:
    """Every file below `root`, in the order of their relative names."""
    found = (Path(folder) / name for folder, _, names in os.walk(root) for name in names)
    return iter(sorted(found, key=lambda path: path.relative_to(root).as_posix()))
