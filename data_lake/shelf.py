"""Memory that videos pass through on their way into a table: used again and again, written and synced beside reading.

Fresh pages are what a copy pays most for, so three shelves take turns: one is filled while two are written, each by a
thread. What is written is forced to disk by threads of their own: waiting for the disk file by file doubled the time.
"""

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from blake3 import blake3
from lance.fragment import FragmentMetadata

from data_lake.files import LakePath, sync
from data_lake.schema import VIDEOS
from errors import Transient

SHELF_BYTES = 64 << 20
WRITERS = 2
SYNCS = 4
_BLOB = VIDEOS.field("video_bytes").type

Write = Callable[[pa.Table], list[FragmentMetadata]]
Content = Path | Callable[[], bytes]
"""Of a video: its file, or what gives its bytes."""


@dataclass(slots=True)
class Shelf:
    """rows: the columns of each video beside its bytes, which end at `ends` in memory; `file_size` and `blake3` are
    among them."""

    memory: bytearray = field(default_factory=bytearray)
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [0])

    def room(self) -> int:
        return len(self.memory) - self.ends[-1]

    def add(self, content: Content, row: Mapping[str, Any]) -> None:
        """A video for which there is room. Raises Transient when its file is shorter than was examined."""
        begin, end = self.ends[-1], self.ends[-1] + row["file_size"]
        with memoryview(self.memory) as memory, memory[begin:end] as place:
            if isinstance(content, Path):
                with content.open("rb", buffering=0) as file:
                    _fill(place, file.readinto, content)
            else:
                place[:] = content()
        self.rows.append({**row, "from": content if isinstance(content, Path) else row["video_key"]})
        self.ends.append(end)

    def verify(self) -> None:
        """Raises Transient when a video is not what was examined."""
        with memoryview(self.memory) as memory:
            for row, begin, end in zip(self.rows, self.ends, self.ends[1:], strict=False):
                if blake3(memory[begin:end]).hexdigest() != row["blake3"]:
                    raise Transient(f"{row['from']} changed while it was read")

    def table(self) -> pa.Table:
        """The videos as rows of `videos.lance`, their bytes not copied."""
        offsets, content = pa.py_buffer(np.array(self.ends, np.int64)), pa.py_buffer(self.memory)
        data = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(self.rows), [None, offsets, content])
        parts = [data if part.name == "data" else pa.nulls(len(self.rows), part.type) for part in _BLOB.storage_type]
        blobs = pa.StructArray.from_arrays(parts, fields=list(_BLOB.storage_type))
        columns = [pa.array([row[item.name] for row in self.rows], item.type) for item in VIDEOS if item.type != _BLOB]
        return pa.table([*columns, pa.ExtensionArray.from_storage(_BLOB, blobs)], schema=VIDEOS)


class Promise(Protocol):
    """Of fragments that are on disk for good once it is done."""

    def done(self) -> bool: ...

    def result(self) -> list[FragmentMetadata]: ...


class InOrder:
    """Fragments that others write, taken in the order in which their videos were put."""

    def __init__(self) -> None:
        self._written: deque[tuple[int, Promise]] = deque()
        self._durable: list[FragmentMetadata] = []
        self._num_durable = 0

    def begin_with(self, fragments: list[FragmentMetadata], num_videos: int) -> None:
        """Videos that an earlier attempt has on disk, before any that are put."""
        self._durable, self._num_durable = list(fragments), num_videos

    def durable(self) -> tuple[int, list[FragmentMetadata]]:
        """How many videos, in the order of `put`, are on disk for good by now, and the fragments that hold them."""
        while self._written and self._written[0][1].done():
            self._take()
        return self._num_durable, self._durable

    def _take(self) -> None:
        """Wait until the oldest shelf is on disk."""
        num_videos, written = self._written.popleft()
        self._durable += written.result()
        self._num_durable += num_videos


@dataclass(frozen=True, kw_only=True, slots=True)
class _Written:
    """A shelf's fragments, and the threads' promises that each file of theirs is on disk."""

    fragments: list[FragmentMetadata]
    synced: list[Future[None]]


@dataclass(frozen=True, slots=True)
class _OnDisk:
    """Once a thread has written a shelf, and others have synced it."""

    written: Future[_Written]

    def done(self) -> bool:
        return self.written.done() and all(synced.done() for synced in self.written.result().synced)

    def result(self) -> list[FragmentMetadata]:
        for synced in self.written.result().synced:
            synced.result()
        return self.written.result().fragments


class Shelves(InOrder):
    """Takes videos and writes them as fragments, in order. `write` makes fragments of a table in `folder`."""

    def __init__(self, folder: LakePath, write: Write) -> None:
        super().__init__()
        self._folder = folder
        self._write = write
        self._pool = ThreadPoolExecutor(max_workers=WRITERS, thread_name_prefix="shelf")
        self._syncs = ThreadPoolExecutor(max_workers=SYNCS, thread_name_prefix="sync")
        self._filling, self._resting = Shelf(), SimpleQueue[Shelf]()
        for _ in range(WRITERS):
            self._resting.put(Shelf())

    def put(self, content: Content, row: Mapping[str, Any]) -> None:
        """One video with its other columns; `row` tells its file_size and blake3.

        Raises Transient when the file is no longer what was examined (here, or where what was written is asked for).
        """
        size = row["file_size"]
        if self._filling.rows and size > self._filling.room():
            self._turn()
        if size > self._filling.room():
            self._filling.memory = bytearray(max(size, SHELF_BYTES))
        self._filling.add(content, row)

    def finish(self) -> list[FragmentMetadata]:
        """All fragments, each on disk for good."""
        self._turn()
        try:
            while self._written:
                self._take()
        finally:
            self._pool.shutdown()
            self._syncs.shutdown()
        return self._durable

    def _turn(self) -> None:
        """Hand the full shelf over and take one that is written, as soon as there is one."""
        if self._filling.rows:
            promise = _OnDisk(self._pool.submit(self._empty, self._filling))
            self._written.append((len(self._filling.rows), promise))
            self._filling = self._resting.get()
        self.durable()  # raises what went wrong meanwhile

    def _empty(self, shelf: Shelf) -> _Written:
        try:
            shelf.verify()
            fragments = self._write(shelf.table())
            files = files_of(self._folder, fragments)
            return _Written(fragments=fragments, synced=[self._syncs.submit(sync, file) for file in files])
        finally:
            shelf.rows, shelf.ends = [], [0]
            self._resting.put(shelf)


def _fill(place: memoryview, read_into: Callable[[memoryview], int | None], path: Path) -> None:
    done = 0
    while done < len(place):
        count = read_into(place[done:])
        if not count:
            raise Transient(f"{path} became shorter while it was read")
        done += count


def stored_files(data: LakePath) -> list[LakePath]:
    """A data file and the blobs that lie in a folder of its name."""
    return [data, *sorted(data.with_suffix("").glob("*"))]


def files_of(folder: LakePath, fragments: list[FragmentMetadata]) -> list[LakePath]:
    """Every file of fragments of the table in `folder`."""
    data = [folder / "data" / file.path for fragment in fragments for file in fragment.files]
    return [file for each in data for file in stored_files(each)]
