"""A source on an object store, as a folder of this machine: what is new or other there, by ETag, is fetched.

A recording is read with seeks all over its files, and its snapshot is a digest of all their bytes: both want them here.
"""

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from upath import UPath

from data_lake import objects
from data_lake.files import replace
from errors import UserError

Say = Callable[[str], None]


def silent(_line: str) -> None:
    """Nobody listens."""


def source_folder(source: str, home: Path, say: Say = silent) -> Path:
    """The folder that `source` names, or its present copy under `home` when it is `s3://…`.

    say: told how much there is and how much of it is fetched. Raises UserError LAKE-002 when nothing is there,
    LAKE-170 … 173 when the store, or this disk, does not have or take it.
    """
    if not objects.is_object_uri(source):
        return Path(source)
    root = objects.object_path(source)
    objects.require_bucket(root)
    parent, _, name = root.path.rstrip("/").rpartition("/")
    return _mirrored(root, home / "sources" / f"in-{quote(parent, safe='')}" / name, say)


def _mirrored(root: UPath, folder: Path, say: Say) -> Path:
    """`folder` with what is below `root` now and nothing else."""
    listed = objects.tagged(root)
    if not listed:
        raise UserError(
            "LAKE-002", "the source holds no files", where=str(root), next_step="check the bucket and the prefix"
        )
    note = folder.with_name(f"{folder.name}.etags.json")
    known = json.loads(note.read_text()) if note.exists() else {}
    absent = {
        name: size for name, (size, tag) in listed.items() if known.get(name) != tag or not (folder / name).is_file()
    }
    num_bytes = sum(size for size, _ in listed.values())
    say(f"{root}: {len(listed)} files, {num_bytes:,} bytes; {sum(absent.values()):,} bytes are fetched to {folder}")
    replace(note, json.dumps({name: tag for name, tag in known.items() if name not in absent}).encode())
    objects.download(root, absent, folder)
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if path.relative_to(folder).as_posix() not in listed:
            path.unlink()
    replace(note, json.dumps({name: tag for name, (_, tag) in listed.items()}).encode())
    return folder
