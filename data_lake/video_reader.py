"""Random access to the pictures in `videos.lance`: one planned read and one decoding of each span for a whole batch.

No file stays open: bytes are asked for by range, and what is kept (tables of packets, decoders) is bounded.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise
from threading import Lock
from typing import Any

import av
import numpy as np

from data_lake.decode import rgb
from data_lake.packets import Decoders, Packets, decode_run, index_packets
from data_lake.stored_videos import Videos, open_videos
from errors import UserError

COLUMN = "video_bytes"
TABLE_BYTES = 64 * 2**20  # tables of packets kept in memory: about two million packets
IDLE_DECODERS = 8
OPENED = 16  # mp4s whose tables are read at once
SHARES = 4  # parts per thread, so that threads end together

Put = Callable[[int, np.ndarray], None]
"""Takes picture n of those asked for, (H, W, 3) uint8 RGB, in one of the threads that decode."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Packets [first, last] of the mp4 in row `row`, decoded once, in `length` bytes from `offset` on.

    members: (which of those asked for, packet)."""

    row: int
    packets: Packets
    first: int
    last: int
    offset: int
    length: int
    members: tuple[tuple[int, int], ...]

    def cut(self, content: bytes) -> Iterator[tuple[int, bytes]]:
        """(ticks, packet) of each packet out of the bytes of the run."""
        inside = slice(self.first, self.last + 1)
        packets = self.packets
        starts, sizes = packets.offset_N[inside] - self.offset, packets.size_N[inside]
        for ticks, start, size in zip(packets.ticks_N[inside].tolist(), starts.tolist(), sizes.tolist(), strict=True):
            yield ticks, content[start : start + size]


class VideoReader:
    """Pictures of the mp4s in the table at `uri`, at `version`, decoded by `threads` threads (0: one per core there).

    Picklable: handles and threads begin anew where it is unpickled. May be used by several threads at once.
    What a fork copies has neither threads nor Lance's: it is refused, for it would wait for ever.
    """

    def __init__(self, uri: str, version: int, threads: int = 0) -> None:
        self.uri, self.version = uri, version
        self._asked = threads
        self.threads = threads or os.cpu_count() or 1
        self._process = os.getpid()
        self._lock = Lock()
        self._drop()

    def _drop(self) -> None:
        self.decoders = Decoders(IDLE_DECODERS)
        self._pool: ThreadPoolExecutor | None = None
        self._known: OrderedDict[int, Packets] = OrderedDict()
        self._known_bytes = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"uri": self.uri, "version": self.version, "threads": self._asked}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)

    @property
    def videos(self) -> Videos:
        return open_videos(self.uri, self.version)

    def ensure_not_forked(self) -> None:
        """Raises UserError LOAD-015."""
        if os.getpid() != self._process:
            raise UserError(
                "LOAD-015",
                "a reader does not work in a process that was forked from the one that made it",
                where=f"{self.uri} · made in process {self._process}, used in {os.getpid()}",
                next_step='start workers afresh: DataLoader(…, multiprocessing_context="spawn")',
            )

    def read(self, rows_M: np.ndarray, seconds_M: np.ndarray, fps: float, put: Put) -> None:
        """Call `put` once with the picture of each m: the one shown at seconds_M[m] of the mp4 in row rows_M[m], less
        than half a frame away. Raises UserError DECODE-001 … -004, LOAD-015."""
        self.ensure_not_forked()
        runs = self.runs(rows_M, seconds_M, fps)
        if not runs:
            return
        work = list(zip(runs, self._contents(runs), strict=True))
        shares = list(_shares(work, self.threads * SHARES if self.threads > 1 else 1))
        if len(shares) == 1:
            self._decode(put, shares[0])
            return
        with self._lock:
            self._pool = self._pool or ThreadPoolExecutor(self.threads, thread_name_prefix="decode")
        for _ in self._pool.map(partial(self._decode, put), shares):
            pass

    def _contents(self, runs: Sequence[Run]) -> list[bytes]:
        """The bytes of each run: of stored videos by one planned read."""
        outside = self.videos.outside
        spans = [(run.row, run.offset, run.length) for run in runs if run.row not in outside]
        ranges = self.videos.table.read_blob_ranges(COLUMN, spans, selector="indices") if spans else ()
        stored = iter([data or b"" for _, _, data in ranges])
        return [self._left(run) if run.row in outside else next(stored) for run in runs]

    def _left(self, run: Run) -> bytes:
        with self.videos.open(run.row, self.videos.named(run.row)) as file:
            file.seek(run.offset)
            return file.read(run.length)

    def close(self) -> None:
        """End the threads and let go of what is kept."""
        if self._pool is not None:
            self._pool.shutdown()
        self._drop()

    def runs(self, rows_M: np.ndarray, seconds_M: np.ndarray, fps: float) -> list[Run]:
        """What must be decoded: of each mp4, from a key packet to the last picture wanted before the next one.
        Reads no pictures. Raises UserError DECODE-001 … -004."""
        runs = []
        order = np.lexsort((seconds_M, rows_M))
        self._look_up(np.unique(rows_M).tolist())
        for members in np.split(order, np.flatnonzero(np.diff(rows_M[order])) + 1) if len(order) else []:
            row = int(rows_M[members[0]])
            packets = self._packets(row)
            at = packets.at(seconds_M[members], 0.5 / fps)
            if (at < 0).any():
                absent = seconds_M[members][at < 0]
                raise UserError(
                    "DECODE-004",
                    f"the video has no frame at {len(absent)} of the wanted times, the first is {absent[0]:.6f} s",
                    where=self.videos.named(row),
                    next_step=self.videos.doctor,
                )
            begins = packets.begins(at)
            for group in np.split(np.arange(len(at)), np.flatnonzero(np.diff(begins)) + 1):
                wanted = tuple(zip(members[group].tolist(), at[group].tolist(), strict=True))
                runs.append(_run(row, packets, int(begins[group[0]]), int(at[group].max()), wanted))
        return runs

    def _look_up(self, rows: Sequence[int]) -> None:
        """Read the tables of packets of several mp4s side by side: on an object store each waits for some answers."""
        with self._lock:
            unknown = [row for row in rows if row not in self._known]
        if len(unknown) > 1:
            with ThreadPoolExecutor(min(len(unknown), OPENED), thread_name_prefix="look-up") as pool:
                for _ in pool.map(self._packets, unknown):
                    pass

    def _packets(self, row: int) -> Packets:
        """The table of packets of the mp4 in this row, kept while there is room; the file is closed again."""
        with self._lock:
            known = self._known.get(row)
            if known is not None:
                self._known.move_to_end(row)
                return known
        with self.videos.open(row, self.videos.named(row)) as file:
            made = index_packets(file, self.videos.named(row))
        with self._lock:
            if row not in self._known:
                self._known[row] = made
                self._known_bytes += made.num_bytes
            while self._known_bytes > TABLE_BYTES and len(self._known) > 1:
                self._known_bytes -= self._known.popitem(last=False)[1].num_bytes
        return made

    def _decode(self, put: Put, share: Sequence[tuple[Run, bytes]]) -> None:
        """Decode runs, those of one mp4 by one decoder."""
        for row, group in groupby(share, lambda work: work[0].row):
            runs = list(group)
            packets, wanted = runs[0][0].packets, dict[int, list[int]]()
            try:
                with self.decoders.lend(packets.codec) as decoder:
                    for run, content in runs:
                        for member, packet in run.members:
                            wanted.setdefault(int(packets.ticks_N[packet]), []).append(member)
                        for at, frame in decode_run(decoder.context, list(run.cut(content)), list(wanted)):
                            image = rgb(frame, decoder.converter)
                            for member in wanted.pop(at):
                                put(member, image)
                        if wanted:
                            raise self._broken(row, "the decoder gave no frame for a packet")
            except (av.FFmpegError, EOFError) as error:
                raise self._broken(row, str(error)) from error

    def _broken(self, row: int, told: str) -> UserError:
        return UserError(
            "DECODE-002",
            f"the video is broken: {told}",
            where=self.videos.named(row),
            next_step=self.videos.doctor,
        )


def _run(row: int, packets: Packets, first: int, last: int, members: tuple[tuple[int, int], ...]) -> Run:
    offsets, sizes = packets.offset_N[first : last + 1], packets.size_N[first : last + 1]
    offset, end = int(offsets.min()), int((offsets + sizes).max())
    return Run(row=row, packets=packets, first=first, last=last, offset=offset, length=end - offset, members=members)


def _shares(work: Sequence[tuple[Run, bytes]], number: int) -> Iterable[Sequence[tuple[Run, bytes]]]:
    """At most `number` parts of about equally many packets, neighbours together."""
    ends = np.cumsum([run.last - run.first + 1 for run, _ in work])
    cuts = np.searchsorted(ends, np.arange(1, number) * ends[-1] / number)
    bounds = np.unique([0, *cuts.tolist(), len(work)])
    return (work[start:end] for start, end in pairwise(bounds))
