"""Trial decoding: the first frame of a video, to know its codec can be decoded here, or every frame of it."""

from dataclasses import dataclass
from io import BufferedIOBase
from typing import BinaryIO

import av
import av.error
from av.codec.codec import UnknownCodecError

ABSENT = (
    av.error.DecoderNotFoundError,
    av.error.NotImplementedError,
    av.error.PatchWelcomeError,
    UnknownCodecError,
)
"""What FFmpeg says of a codec that this build, or this machine, has no working decoder for (ENOSYS: AV1 without
dav1d on a GPU that lacks it)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """absent: why nothing can be decoded here ("" when it can). broken_s: times since the first frame, ascending,
    of frames that cannot be decoded or were patched up by the decoder; told: what the decoder says of the first."""

    absent: str = ""
    broken_s: tuple[float, ...] = ()
    told: str = ""


def decode_first(file: str | BinaryIO | BufferedIOBase) -> Trial:
    """Decode until the first frame comes out."""
    return _decode(file, everything=False)


def decode_all(file: str | BinaryIO | BufferedIOBase) -> Trial:
    """Decode every frame, one packet at a time, in one thread: what fails is told by its packet's time."""
    return _decode(file, everything=True)


def _decode(file: str | BinaryIO | BufferedIOBase, *, everything: bool) -> Trial:
    broken: dict[int, str] = {}
    shown: set[int] = set()
    expected: set[int] = set()
    try:
        with av.open(file, mode="r") as container:
            stream = container.streams.video[0]
            # PyAV's types do not say it, but a stream without a decoder has no context
            if stream.codec_context is None:  # pyright: ignore[reportUnnecessaryComparison]
                return Trial(absent="this build of FFmpeg has no decoder")
            stream.thread_count, stream.thread_type = 1, "NONE"
            if everything:
                stream.codec_context.options = {"err_detect": "crccheck+bitstream+buffer+explode"}
            for packet in container.demux(stream):
                if packet.pts is not None and not packet.is_discard:
                    expected.add(packet.pts)
                try:
                    frames = packet.decode()
                except ABSENT as error:
                    return Trial(absent=f"decoder {stream.codec_context.name}: {error}")
                except (av.error.FFmpegError, EOFError) as error:
                    if packet.pts is not None:
                        broken[packet.pts] = str(error)
                    continue
                for frame in frames:
                    shown |= {frame.pts} if frame.pts is not None else set()
                    if frame.is_corrupt and frame.pts is not None:
                        broken[frame.pts] = "the decoder had to patch the frame up"
                if shown and not everything:
                    return Trial()
            seconds = float(stream.time_base or 1)
    except (av.error.FFmpegError, IndexError, EOFError) as error:
        return Trial(broken_s=(0.0,), told=str(error))
    broken = dict.fromkeys(expected - shown, "no frame came out") | broken
    origin = min(expected, default=0)
    times = tuple(float(pts - origin) * seconds for pts in sorted(broken))
    return Trial(broken_s=times, told=broken[min(broken)] if broken else "")
