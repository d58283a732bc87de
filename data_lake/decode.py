"""Decode chosen frames of a span of video to RGB, by frame number and never by drifting seconds.

Lossless RGB H.264 comes back byte for byte; a codec that this build lacks is told apart from a broken file.
"""

import contextlib
from collections.abc import Iterator, Sequence
from fractions import Fraction
from io import BufferedIOBase
from typing import BinaryIO

import av
import numpy as np
from av.container import InputContainer
from av.video.reformatter import VideoReformatter

from data_lake.trial import ABSENT
from errors import UserError

BUFFER_BYTES = 1 << 20  # FFmpeg asks Python for so much at once; at its own 32 KiB the threads wait for one another
RATE_FIX = "check the declared fps and timestamps with `./vlaloop doctor PATH`"


@contextlib.contextmanager
def opened_video(file: BinaryIO | BufferedIOBase, where: str) -> Iterator[tuple[InputContainer, av.VideoStream]]:
    """The container and its first video stream; FFmpeg's own failures come out as one clear error."""
    try:
        with av.open(file, mode="r", buffer_size=BUFFER_BYTES) as container:
            if not container.streams.video:
                raise UserError("DECODE-003", "no video stream in this file", where=where)
            stream = container.streams.video[0]
            # PyAV's types do not say it, but a stream without a decoder has no context
            if stream.codec_context is None:  # pyright: ignore[reportUnnecessaryComparison]
                raise UserError(
                    "DECODE-001",
                    "this build of FFmpeg has no decoder for the video's codec; the file itself may be sound",
                    where=where,
                    next_step="re-encode the video as H.264 or AV1, or install a PyAV build that has the codec",
                )
            yield container, stream
    except ABSENT as error:
        raise UserError("DECODE-001", f"codec not available on this machine: {error}", where=where) from error
    except (av.FFmpegError, EOFError) as error:
        raise UserError(
            "DECODE-002",
            f"the video is broken: {error}",
            where=where,
            next_step="copy the file again, or take the episode out of the source, and ingest into a new data set",
        ) from error


def _stamped(
    container: InputContainer, stream: av.VideoStream, start_s: float
) -> Iterator[tuple[Fraction, av.VideoFrame]]:
    """(seconds since the file's first frame, frame) in showing order, beginning at or before `start_s`."""
    time_base = stream.time_base or Fraction(1, 1_000_000)
    origin = (stream.start_time or 0) * time_base
    for target_s in (start_s, 0.0):
        container.seek(int((Fraction(target_s) + origin) / time_base), stream=stream, backward=True)
        decoded = (
            (frame.pts * time_base - origin, frame) for frame in container.decode(stream) if frame.pts is not None
        )
        first = next(decoded, None)
        if first is not None and (first[0] <= start_s or target_s == 0.0):
            yield first
            yield from decoded
            return


def rgb(frame: av.VideoFrame, converter: VideoReformatter) -> np.ndarray:
    """(H, W, 3) uint8. Planar RGB, as lossless video has it, is only rearranged, never converted."""
    if frame.format.name == "gbrp":
        return frame.to_ndarray()
    # in this thread: slices for a pool, the default, wait longer for its threads than the whole conversion takes
    return converter.reformat(frame, format="rgb24", threads=1).to_ndarray()


def _missing(indices: Sequence[int], from_s: float, fps: float, where: str) -> UserError:
    return UserError(
        "DECODE-004",
        f"the video has no frame for {len(indices)} of the wanted indices, the first is {indices[0]}",
        where=f"{where} · from {from_s:.6f} s at {fps:g} fps",
        next_step=RATE_FIX,
    )


def frames(
    file: BinaryIO | BufferedIOBase,
    *,
    from_s: float,
    to_s: float | None,
    fps: float,
    wanted: Sequence[int],
    where: str = "video",
) -> Iterator[tuple[int, np.ndarray]]:
    """(index in the span, (H, W, 3) uint8 RGB) for each of `wanted`, which ascend.

    Frame i of the span is the one shown at from_s + i/fps: its exact rational time lies less than half a frame
    away. Frames at or after to_s belong to somebody else (None: the span ends with the file). Only wanted frames
    are converted to RGB. Raises UserError DECODE-001 (codec absent), -002 (broken),
    -003 (no video), -004 (a wanted frame is missing), -005 (two frames for one index: the rate is wrong).
    """
    inside = [index for index in wanted if to_s is None or from_s + (index + 0.5) / fps < to_s]
    if len(inside) < len(wanted):
        raise _missing(wanted[len(inside) :], from_s, fps, where)
    if not wanted:
        return
    with opened_video(file, where) as (container, stream):
        start_s = max(0.0, from_s + (wanted[0] - 0.5) / fps)
        position, previous, converter = 0, None, VideoReformatter()
        for seconds, frame in _stamped(container, stream, start_s):
            index = round((float(seconds) - from_s) * fps)
            if index == previous:
                raise UserError(
                    "DECODE-005",
                    f"two video frames for frame {index}: {fps:g} fps is not the video's rate",
                    where=where,
                    next_step=RATE_FIX,
                )
            previous = index
            if index > wanted[position]:
                break
            if index == wanted[position]:
                yield index, rgb(frame, converter)
                position += 1
                if position == len(wanted):
                    return
        raise _missing(wanted[position:], from_s, fps, where)


def upright_rgb(image: np.ndarray, colour_order: str, image_orientation: str) -> np.ndarray:
    """(H, W, 3) as declared to upright RGB: `bgr` swaps the channels, `upside_down` is turned by 180 degrees,
    `flipped` has its last line on top (OpenGL's origin, as robosuite records)."""
    if colour_order == "bgr":
        image = image[:, :, ::-1]
    if image_orientation == "upside_down":
        image = image[::-1, ::-1]
    elif image_orientation == "flipped":
        image = image[::-1]
    return np.ascontiguousarray(image)
