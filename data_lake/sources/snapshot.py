"""A source as it is now: one digest over its files, cached by size and mtime so that looking again is cheap."""

import hashlib
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from data_lake.files import content_digest, replace
from data_lake.refs import SourceRef
from errors import UserError

HASHERS = 4
Known = dict[str, tuple[int, int, str]]


def snapshot(path: Path, cache_dir: Path, *, rehash: bool = False) -> SourceRef:
    """What is at `path` now. Files are hashed only when (path, size, mtime_ns) is new to the cache, all with `rehash`.

    Hidden files and `__pycache__` do not count. Raises UserError LAKE-002 when there is nothing.
    """
    root = path.resolve()
    seen = _look(path, cache_dir, rehash=rehash)
    if not seen:
        raise UserError(
            "LAKE-002",
            "the source holds no files",
            where=str(path),
            next_step="check the path (in a recipe: ingest.source)",
        )
    lines = "".join(f"{digest}  {relative}\n" for relative, (_, _, digest) in sorted(seen.items()))
    return SourceRef(
        uri=root.name,
        fingerprint=hashlib.sha256(lines.encode()).hexdigest(),
        path=str(root),
        num_files=len(seen),
        num_bytes=sum(size for size, _, _ in seen.values()),
    )


def digests(path: Path, cache_dir: Path) -> dict[Path, str]:
    """BLAKE3 of each file of the source, as `snapshot` sees them."""
    seen = _look(path, cache_dir)
    return {path if path.is_file() else path / relative: digest for relative, (_, _, digest) in seen.items()}


def _look(path: Path, cache_dir: Path, *, rehash: bool = False) -> Known:
    """Size, mtime_ns and digest of each file."""
    root = path.resolve()
    if not root.exists():
        raise UserError(
            "LAKE-002",
            "the source does not exist",
            where=str(path),
            next_step="check the path (in a recipe: ingest.source)",
        )
    store = cache_dir / f"snapshot-{hashlib.sha256(str(root).encode()).hexdigest()[:16]}.json"
    known: Known = {} if rehash else _load(store)
    stats = {relative: (file, file.stat()) for relative, file in _files(root)}
    new = [
        (relative, file)
        for relative, (file, stat) in stats.items()
        if known.get(relative, (-1, -1, ""))[:2] != (stat.st_size, stat.st_mtime_ns)
    ]
    with ThreadPoolExecutor(HASHERS) as pool:
        hashed = dict(zip((name for name, _ in new), pool.map(content_digest, (file for _, file in new)), strict=True))
    seen = {
        relative: (stat.st_size, stat.st_mtime_ns, hashed[relative] if relative in hashed else known[relative][2])
        for relative, (_, stat) in stats.items()
    }
    if seen != known:
        _save(store, seen)
    return seen


def verify(ref: SourceRef, cache_dir: Path) -> None:
    """Raises UserError LAKE-003 when the files at `ref.path` are no longer those of the snapshot."""
    now = snapshot(Path(ref.path), cache_dir)
    if now.fingerprint != ref.fingerprint:
        raise UserError(
            "LAKE-003",
            "the source changed since this run began",
            where=f"{ref.path} · {ref.num_files} files, {ref.num_bytes:,} bytes then; "
            f"{now.num_files} files, {now.num_bytes:,} bytes now",
            done="nothing was read",
            next_step="start a new run; a Retry of this one can only use the files that it began with",
        )


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    if root.is_file():
        yield root.name, root
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
        for name in sorted(names):
            file = Path(folder) / name
            if not name.startswith(".") and file.is_file():
                yield file.relative_to(root).as_posix(), file


def _load(store: Path) -> Known:
    try:
        return {name: (size, mtime, digest) for name, (size, mtime, digest) in json.loads(store.read_text()).items()}
    except (FileNotFoundError, ValueError, AttributeError, TypeError):
        return {}  # no cache, or a torn one: hash again


def _save(store: Path, seen: Known) -> None:
    replace(store, json.dumps(seen).encode())
