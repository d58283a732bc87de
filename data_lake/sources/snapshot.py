"""A source as it is now: one digest over its files, cached by size and mtime so that looking again is cheap."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from data_lake.files import TEMPORARY, content_digest, replace
from data_lake.refs import SourceRef
from errors import UserError

HASHERS = 4
NO_DATA = {
    *("__pycache__", ".ipynb_checkpoints", ".DS_Store", ".git", ".gitattributes", ".gitignore", ".gitmodules"),
    *(".hg", ".svn", ".cache", ".huggingface"),
}
"""Names of what version control, caches and desktops leave. An ingest that would read such a file refuses."""
LEFT_BEHIND = (TEMPORARY, ".Trash", ".nfs", ".fuse_hidden")  # beginnings of names
Known = dict[str, tuple[int, int, str]]


def snapshot(path: Path, cache_dir: Path, *, rehash: bool = False) -> SourceRef:
    """What is at `path` now. Files are hashed only when (path, size, mtime_ns) is new to the cache, all with `rehash`.

    Folders and files that are links count with what they lead to, hidden ones like others, NO_DATA does not. Raises
    UserError LAKE-002 when there is nothing, LAKE-240 when a link leads back to a folder that it is in.
    """
    return _named(path, _look(path, cache_dir, rehash=rehash))


def _named(path: Path, seen: Known) -> SourceRef:
    root = path.resolve()
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
    return _placed(path, _look(path, cache_dir))


def _placed(path: Path, seen: Known) -> dict[Path, str]:
    is_file = path.is_file()
    return {path if is_file else path / relative: digest for relative, (_, _, digest) in seen.items()}


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
    stats = _files(root)
    new = [
        name for name, stat in stats.items() if known.get(name, (-1, -1, ""))[:2] != (stat.st_size, stat.st_mtime_ns)
    ]
    with ThreadPoolExecutor(HASHERS) as pool:
        paths = (root if root.is_file() else root / name for name in new)
        hashed = dict(zip(new, pool.map(content_digest, paths), strict=True))
    seen = {
        name: (stat.st_size, stat.st_mtime_ns, hashed[name] if name in hashed else known[name][2])
        for name, stat in stats.items()
    }
    if seen != known:
        _save(store, seen)
    return seen


def verify(ref: SourceRef, cache_dir: Path) -> dict[Path, str]:
    """`digests` of the files that the snapshot is of. Raises UserError LAKE-003 when they are others now."""
    path = Path(ref.path)
    seen = _look(path, cache_dir)
    now = _named(path, seen)
    if now.fingerprint != ref.fingerprint:
        raise UserError(
            "LAKE-003",
            "the source changed since this run began",
            where=f"{ref.path} · {ref.num_files} files, {ref.num_bytes:,} bytes then; "
            f"{now.num_files} files, {now.num_bytes:,} bytes now",
            done="nothing was read",
            next_step="start a new run; a Retry of this one can only use the files that it began with",
        )
    return _placed(path, seen)


def ensure_covered(read: Iterable[Path], held: Mapping[Path, str]) -> None:
    """Raises UserError LAKE-241 for a file among `read` that is there, and not among those that a snapshot `held`.

    Where no digests are `held` at all, nothing is vouched for."""
    for path in read if held else ():
        if path not in held and path.is_file():
            raise UserError(
                "LAKE-241",
                "the source names a file that its snapshot leaves out: a change in it would not be seen",
                where=str(path),
                done="nothing was read",
                next_step="move it to a folder of the source, under a name that version control or caches do not use",
            )


def _files(root: Path) -> dict[str, os.stat_result]:
    """By name below the root. Without Path objects: a source that did not change is looked at three times."""
    if root.is_file():
        return {root.name: root.stat()}
    top, found = str(root), {}
    for folder, folders, names in os.walk(top, followlinks=True):
        folders[:] = sorted(name for name in folders if _counts(name))
        for name in folders:
            _ensure_no_circle(os.path.join(folder, name))
        below = folder[len(top) :].lstrip("/")
        for name in sorted(names):
            path = os.path.join(folder, name)
            if _counts(name) and os.path.isfile(path):
                found[os.path.join(below, name)] = os.stat(path)
    return found


def _counts(name: str) -> bool:
    return name not in NO_DATA and not name.startswith(LEFT_BEHIND)


def _ensure_no_circle(folder: str) -> None:
    """Raises UserError LAKE-240 for a link to a folder above it: what lies below has no end."""
    if not os.path.islink(folder):
        return
    target, above = os.path.realpath(folder), os.path.dirname(folder)
    while not os.path.samefile(above, target):
        if above == os.path.dirname(above):
            return
        above = os.path.dirname(above)
    raise UserError(
        "LAKE-240",
        "a link in the source leads back to a folder that it is in",
        where=f"{folder} → {target}",
        done="nothing was read",
        next_step="remove the link, or let it lead to the data alone",
    )


def _load(store: Path) -> Known:
    try:
        return {name: (size, mtime, digest) for name, (size, mtime, digest) in json.loads(store.read_text()).items()}
    except (FileNotFoundError, ValueError, AttributeError, TypeError):
        return {}  # no cache, or a torn one: hash again


def _save(store: Path, seen: Known) -> None:
    replace(store, json.dumps(seen).encode())
