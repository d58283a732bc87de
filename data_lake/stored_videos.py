"""The mp4s of a data set's version, each by its place: stored in the table, or left outside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from io import BufferedIOBase
from pathlib import Path, PurePosixPath

import lance
from blake3 import blake3
from lance.fragment import FragmentMetadata

from data_lake.files import LakePath
from data_lake.references import open_reference, referenced
from data_lake.schema import VIDEOS
from errors import UserError

BLOCK = 1 << 20
Place = tuple[str, int, int]
"""video_key, chunk_index, file_index."""

_as_recorded: set[tuple[str, int, int]] = set()
"""(uri, version, row) of stored videos that this process found to be what was recorded."""


@dataclass(frozen=True, slots=True)
class Videos:
    """places, recorded: of each row, where it is and its (bytes, BLAKE3). row_of: the row of each place. outside: by
    row, the files of those whose bytes are not in the table."""

    uri: str
    version: int
    table: lance.LanceDataset
    places: Sequence[Place]
    recorded: Sequence[tuple[int, str]]
    row_of: Mapping[Place, int]
    outside: Mapping[int, Path]

    def row(self, place: Place) -> int:
        """Raises UserError PREP-006 when the lake has no such mp4."""
        row = self.row_of.get(place)
        if row is None:
            raise self._absent(place)
        return row

    def open(self, row: int, where: str) -> BufferedIOBase:
        """A seekable file, read lazily. where: whose it is, for people. Raises UserError PREP-006 when nothing is
        stored, LAKE-197 and LAKE-198 as `open_reference`."""
        if (path := self.outside.get(row)) is not None:
            return open_reference(path, *self.recorded[row], where)
        found = self.table.take_blobs("video_bytes", indices=[row])[0]
        if found is None:
            raise self._absent(self.places[row])
        return found

    def ensure_recorded(self, row: int, where: str) -> None:
        """Before anything is learnt from it: its bytes are those that came in. Read whole, once in a process.

        Raises UserError LAKE-073 where not, and as `open`.
        """
        key = (self.uri, self.version, row)
        if key in _as_recorded:
            return
        with self.open(row, where) as file:  # opening what is outside looks at its bytes already
            if row not in self.outside and content_of(file) != self.recorded[row]:
                camera, chunk, number = self.places[row]
                raise UserError(
                    "LAKE-073",
                    "stored video bytes are not those that were recorded",
                    where=f"{where} · {camera}, chunk {chunk}, file {number} · {self.uri}",
                    next_step="restore the data set from a copy, or ingest its sources into a new one",
                )
        _as_recorded.add(key)

    def named(self, row: int) -> str:
        """Which mp4 that is, for people."""
        camera, chunk, file = self.places[row]
        return f"video {camera}, chunk {chunk}, file {file} · {self.uri} at version {self.version}"

    @property
    def doctor(self) -> str:
        """The command that finds every frame which cannot be decoded, with its episode."""
        return f"./vlaloop doctor {PurePosixPath(self.uri).parent.name} --deep"

    def _absent(self, place: Place) -> UserError:
        camera, chunk, number = place
        return UserError(
            "PREP-006",
            f"no video {camera!r}, chunk {chunk}, file {number}",
            where=f"{self.uri} at version {self.version}",
            next_step="run `./vlaloop doctor` on the data set",
        )


def content_of(file: BufferedIOBase) -> tuple[int, str]:
    """Bytes, and their hex BLAKE3."""
    digest, size = blake3(), 0
    for block in iter(partial(file.read, BLOCK), b""):
        digest.update(block)
        size += len(block)
    return size, digest.hexdigest()


@lru_cache(maxsize=4)
def open_videos(uri: str, version: int) -> Videos:
    """Of `videos.lance` at `uri`; what was opened stays open for the next one who asks."""
    table = lance.dataset(uri, version=version)
    rows = table.to_table(columns=["video_key", "chunk_index", "file_index", "file_size", "blake3"]).to_pylist()
    places = [(row["video_key"], row["chunk_index"], row["file_index"]) for row in rows]
    return Videos(
        uri=uri,
        version=version,
        table=table,
        places=places,
        recorded=[(row["file_size"], row["blake3"]) for row in rows],
        row_of={place: row for row, place in enumerate(places)},
        outside=referenced(table),
    )


def open_video(
    uri: str, version: int, video_key: str, chunk_index: int, file_index: int, *, where: str = ""
) -> BufferedIOBase:
    """One mp4 of the table. Raises UserError as `Videos.row` and `Videos.open`."""
    videos = open_videos(uri, version)
    return videos.open(videos.row((video_key, chunk_index, file_index)), where or f"camera {video_key}")


def num_as_recorded(folder: LakePath, fragments: Sequence[FragmentMetadata]) -> int:
    """How many of these, which are in no version of the table at `folder` yet, hold in each of their rows the bytes
    that came in, up to the first that does not. Every byte is read."""
    latest = lance.dataset(str(folder)).version
    operation = lance.LanceOperation.Overwrite(VIDEOS, list(fragments))
    table = lance.LanceDataset.commit(str(folder), operation, read_version=latest, detached=True)
    recorded = table.to_table(columns=["file_size", "blake3"]).to_pylist()
    begin = 0
    for number, fragment in enumerate(fragments):
        end = begin + fragment.physical_rows
        for row in range(begin, end):
            if _stored(table, row) != (recorded[row]["file_size"], recorded[row]["blake3"]):
                return number
        begin = end
    return len(fragments)


def _stored(table: lance.LanceDataset, row: int) -> tuple[int, str] | None:
    """None: it is gone, or cut short."""
    try:
        found = table.take_blobs("video_bytes", indices=[row])[0]
        if found is None:
            return None
        with found as blob:
            return content_of(blob)
    except (OSError, ValueError):
        return None
