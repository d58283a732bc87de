"""Videos that stay where they are: rows of `videos.lance` whose blob is a file outside, held to its size and BLAKE3.

The path says where the file was when it came in and is no part of any identity. All readers open it here: another
content is an error, never other pixels. References stand in fragments of their own, so that they can be written anew.
"""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import lance
import pyarrow as pa
from blake3 import blake3
from lance.fragment import FragmentMetadata, write_fragments

from data_lake.files import LakePath
from data_lake.schema import FILE_FORMAT, VIDEOS
from data_lake.shelf import Shelves
from errors import UserError

EXTERNAL = 3  # `kind` of a blob v2 descriptor that is a URI (lance-format, "Blob v2")
BLOCK = 1 << 20
COLUMNS = [item.name for item in VIDEOS if item.name != "video_bytes"]

_verified: dict[tuple[str, int, int, int, int], str] = {}
"""(path, inode, size, mtime_ns, ctime_ns) to the BLAKE3 that this process found there. Programs can set a file's mtime
back, as copying does; its ctime nobody can."""


def referenced(videos: lance.LanceDataset | lance.LanceFragment) -> dict[int, Path]:
    """By row, the files of those videos whose bytes are not in the table. Reads descriptors, no bytes."""
    blobs = videos.to_table(columns=["video_bytes"])["video_bytes"].to_pylist()
    return {
        row: Path(url2pathname(urlsplit(blob["blob_uri"]).path))
        for row, blob in enumerate(blobs)
        if blob is not None and blob["kind"] == EXTERNAL
    }


def open_reference(path: Path, num_bytes: int, digest: str, where: str) -> BufferedReader:
    """The file, open; its size is looked at each time, its content hashed when this process first meets it or when
    its inode or times changed since. Raises UserError LAKE-197 when it cannot be opened, LAKE-198 when it is another.
    """
    with ExitStack() as opened:
        try:
            file = opened.enter_context(path.open("rb"))
        except OSError as error:
            raise _unlike("LAKE-197", f"a referenced video cannot be opened: {error.strerror}", path, where) from error
        stat = os.fstat(file.fileno())
        if stat.st_size != num_bytes:
            seen = f"{stat.st_size:,} bytes, {num_bytes:,} came in"
            raise _unlike("LAKE-198", f"a referenced video is not what came in: {seen}", path, where)
        key = (str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        if key not in _verified:
            _verified[key] = _digest(file)
        if _verified[key] != digest:
            seen = f"its BLAKE3 is {_verified[key][:12]}…, not {digest[:12]}…"
            raise _unlike("LAKE-198", f"a referenced video is not what came in: {seen}", path, where)
        opened.pop_all()
    return file


def _digest(file: BufferedReader) -> str:
    digest = blake3()
    for block in iter(partial(file.read, BLOCK), b""):
        digest.update(block)
    file.seek(0)
    return digest.hexdigest()


def _unlike(code: str, message: str, path: Path, where: str) -> UserError:
    return UserError(
        code,
        message,
        where=f"{path} · {where}",
        done="nothing was read from it",
        next_step="put the file back, or ingest its source again from where it is now: ./vlaloop ingest PATH … "
        '--reference --why "videos moved" (without --reference its bytes are taken in)',
    )


class References:
    """The videos of a version that stay where they are, by (video_key, chunk_index, file_index); a writer changes them.

    changed: whether the version that is written must not take over the fragments that hold them.
    """

    def __init__(self, videos: lance.LanceDataset | None) -> None:
        self.changed = False
        self._rows: dict[tuple[str, int, int], dict[str, Any]] = {}
        found = {} if videos is None else referenced(videos)
        if videos is not None and found:
            rows = videos.to_table(columns=COLUMNS).to_pylist()
            self._rows = {_place(rows[row]): {**rows[row], "path": path} for row, path in found.items()}

    def put(self, row: Mapping[str, Any], path: Path) -> None:
        """A video in the columns of `videos.lance`, and the file that holds it."""
        entry = {**row, "path": path.resolve()}
        if self._rows.get(_place(row)) != entry:
            self._rows[_place(row)], self.changed = entry, True

    def take_in(self, row: Mapping[str, Any]) -> bool:
        """Forget a video whose bytes are to be stored from now on. False: it was no reference."""
        there = self._rows.pop(_place(row), None) is not None
        self.changed |= there
        return there

    def has(self, row: Mapping[str, Any]) -> bool:
        return _place(row) in self._rows

    @property
    def are_any(self) -> bool:
        return bool(self._rows)

    def of(self, key: str, chunk_index: int, file_index: int) -> Mapping[str, Any] | None:
        """The columns of that video and its `path`; None when it is stored."""
        return self._rows.get((key, chunk_index, file_index))

    def write(self, folder: LakePath) -> list[FragmentMetadata]:
        """Fragments of all references, in a table that is there already; none where nothing changed."""
        if not self.changed or not self._rows:
            return []
        rows = list(self._rows.values())
        blobs = lance.blob_array([lance.blob.Blob.from_uri(row["path"].as_uri()) for row in rows])
        columns = [pa.array([row[name] for row in rows], VIDEOS.field(name).type) for name in COLUMNS]
        return _write(folder, pa.table([*columns, blobs], schema=VIDEOS))


def stored_fragments(videos: lance.LanceDataset, folder: LakePath) -> list[FragmentMetadata]:
    """The referenced videos of a table as fragments that hold their bytes, in a table that is there at `folder`.

    Raises UserError as `open_reference`.
    """
    rows, shelves = videos.to_table(columns=COLUMNS).to_pylist(), Shelves(folder, partial(_write, folder))
    for number, path in referenced(videos).items():
        row = rows[number]
        shelves.put(partial(_content, path, row), row)
    return shelves.finish()


def _content(path: Path, row: Mapping[str, Any]) -> bytes:
    with open_reference(path, row["file_size"], row["blake3"], f"camera {row['video_key']}") as file:
        return file.read()


def _write(folder: LakePath, table: pa.Table) -> list[FragmentMetadata]:
    return write_fragments(
        table,
        str(folder),
        schema=VIDEOS,
        mode="append",
        data_storage_version=FILE_FORMAT,
        allow_external_blob_outside_bases=True,
    )


def _place(row: Mapping[str, Any]) -> tuple[str, int, int]:
    return row["video_key"], row["chunk_index"], row["file_index"]
