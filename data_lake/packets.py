"""Frames of mp4s in the lake at any time: where their packets lie, and decoders that serve every file alike.

An mp4 is opened once, for its table of packets; what decodes is lent by codec parameters, not by file, so that ten
thousand files of one recorder need as many decoders as there are threads.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from threading import Lock
from typing import BinaryIO

import av
import numpy as np
from av.video.reformatter import VideoReformatter

from data_lake.decode import opened_video
from errors import UserError

IN_ORDER = ("av1", "vp8", "vp9", "mjpeg")  # codecs whose packets are shown in the order in which they are decoded


@dataclass(frozen=True, kw_only=True, slots=True)
class Codec:
    """What a decoder must know before its first packet, as the container tells it."""

    name: str
    extradata: bytes
    size: tuple[int, int]
    pix_fmt: str | None
    colours: tuple[int, int, int, int]

    def context(self) -> av.VideoCodecContext:
        """A decoder in one thread: parallel are the runs, not the frames inside of one."""
        context = av.CodecContext.create(self.name, "r")
        assert isinstance(context, av.VideoCodecContext)
        context.extradata = self.extradata
        context.width, context.height = self.size
        context.pix_fmt = self.pix_fmt
        context.colorspace, context.color_range, context.color_primaries, context.color_trc = self.colours
        context.thread_count, context.thread_type = 1, "NONE"
        return context


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Packets:
    """Packets of one mp4 in decoding order (N,): ticks_N, when each is shown, and seconds_N, the same since the
    file's first frame; offset_N and size_N bytes; key_N, where decoding can begin; shown_N: not cut by an edit list.
    """

    codec: Codec
    ticks_N: np.ndarray
    seconds_N: np.ndarray
    offset_N: np.ndarray
    size_N: np.ndarray
    key_N: np.ndarray
    shown_N: np.ndarray

    @property
    def num_bytes(self) -> int:
        """Memory that the table takes."""
        arrays = (self.ticks_N, self.seconds_N, self.offset_N, self.size_N, self.key_N, self.shown_N)
        return sum(array.nbytes for array in arrays)

    def at(self, seconds_M: np.ndarray, slack_s: float) -> np.ndarray:
        """The packet (M,) int64 shown at each time, less than `slack_s` away; -1 where none is."""
        shown = np.flatnonzero(self.shown_N)
        shown = shown[np.argsort(self.seconds_N[shown], kind="stable")]
        times = self.seconds_N[shown]
        place_M = np.minimum(np.searchsorted(times, seconds_M - slack_s), len(times) - 1)
        return np.where(np.abs(times[place_M] - seconds_M) < slack_s, shown[place_M], -1)

    def begins(self, packets_M: np.ndarray) -> np.ndarray:
        """Where decoding must begin (M,) for each packet: the last key packet not shown after it."""
        keys = np.flatnonzero(self.key_N)
        place_M = np.searchsorted(self.ticks_N[keys], self.ticks_N[packets_M], side="right") - 1
        return np.where(place_M >= 0, keys[place_M], 0)


def index_packets(file: BinaryIO | BufferedIOBase, where: str) -> Packets:
    """The table of packets of an mp4. From its index alone, or, where packets are reordered (B frames) or the file
    is in fragments, by demuxing it once. Raises UserError DECODE-001, -002, -003 as `frames` does."""
    with opened_video(file, where) as (container, stream):
        context, entries = stream.codec_context, stream.index_entries
        if context.codec.canonical_name in IN_ORDER and len(entries) == stream.frames:
            rows = [(e.timestamp, e.pos, e.size, e.is_keyframe, not e.is_discard) for e in entries]
        else:
            found = (packet for packet in container.demux(stream) if packet.pts is not None)
            rows = [(p.pts, p.pos or 0, p.size, p.is_keyframe, not p.is_discard) for p in found]
        if not any(is_shown for *_, is_shown in rows):
            raise UserError("DECODE-002", "the video is broken: it holds no packet that is shown", where=where)
        ticks, offsets, sizes, keys, shown = zip(*rows, strict=True)
        colours = (context.colorspace, context.color_range, context.color_primaries, context.color_trc)
        codec = Codec(
            name=context.name,
            extradata=context.extradata or b"",
            size=(context.width, context.height),
            pix_fmt=context.pix_fmt,
            colours=(int(colours[0]), int(colours[1]), int(colours[2]), int(colours[3])),
        )
        time_base, origin = float(stream.time_base or 1), stream.start_time or 0
    ticks_N = np.array(ticks, np.int64)
    return Packets(
        codec=codec,
        ticks_N=ticks_N,
        seconds_N=(ticks_N - origin) * time_base,
        offset_N=np.array(offsets, np.int64),
        size_N=np.array(sizes, np.int64),
        key_N=np.array(keys, bool),
        shown_N=np.array(shown, bool),
    )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Decoder:
    """context decodes packets of `codec`; converter makes RGB of its frames and remembers how."""

    codec: Codec
    context: av.VideoCodecContext
    converter: VideoReformatter


class Decoders:
    """Lends decoders by codec parameters. At most `limit` wait for the next borrower; the longest unused one goes.

    num_opened: how many were made so far.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.num_opened = 0
        self._idle: list[Decoder] = []  # the longest unused one first
        self._lock = Lock()

    @property
    def num_idle(self) -> int:
        return len(self._idle)

    @contextlib.contextmanager
    def lend(self, codec: Codec) -> Iterator[Decoder]:
        """A decoder as if freshly made. One that fails is not lent again."""
        with self._lock:
            decoder = next((idle for idle in reversed(self._idle) if idle.codec == codec), None)
            if decoder is not None:
                self._idle.remove(decoder)
            else:
                self.num_opened += 1
        decoder = decoder or Decoder(codec=codec, context=codec.context(), converter=VideoReformatter())
        yield decoder
        with self._lock:
            self._idle.append(decoder)
            del self._idle[: -self.limit]


def decode_run(
    context: av.VideoCodecContext, run: Sequence[tuple[int, bytes]], wanted: Sequence[int]
) -> Iterator[tuple[int, av.VideoFrame]]:
    """(ticks, frame) of those `wanted` out of one run of (ticks, packet) that begins with a key packet. Leaves the
    decoder ready for any other run."""
    left, pending = set(wanted), 0
    for ticks, content in run:
        packet = av.Packet(content)
        packet.pts = ticks
        pending += 1
        for frame in context.decode(packet):
            pending -= 1
            if frame.pts in left:
                left.discard(frame.pts)
                yield frame.pts, frame
    if pending or left:
        for frame in context.decode(None):
            if frame.pts in left:
                left.discard(frame.pts)
                yield frame.pts, frame
        context.flush_buffers()
