"""Pictures that a source holds one by one: seen once to know them, and kept in the lake as lossless video.

H.264 in RGB at quantiser 0: decoding gives back the pixels that went in, to the last bit.
"""

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np
from blake3 import blake3

from data_lake.sources.episode import Pictures, VideoSpan
from data_lake.sources.files import Unreadable
from data_lake.video import VideoIndex, index_bytes

LOSSLESS = {"qp": "0", "preset": "ultrafast", "g": "80"}
RATE_LIMIT = 100_000  # denominators up to this: 30000/1001 stays itself


@dataclass(frozen=True, kw_only=True, slots=True)
class PicturesIndex:
    """num_frames, the size that all share, and the BLAKE3 over their pixels as the source has them."""

    num_frames: int
    height: int
    width: int
    digest: str


def index_pictures(pictures: Pictures) -> PicturesIndex:
    """Look at every frame once. Raises Unreadable LAKE-031 when one is no image of the first one's size."""
    digest, shape, count = blake3(), None, 0
    for number, image in enumerate(pictures.frames()):
        shape = image.shape if shape is None else shape
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or image.shape != shape:
            raise Unreadable("LAKE-031", f"frame {number} is {image.dtype} {image.shape}, the first is {shape}")
        digest.update(np.ascontiguousarray(image).tobytes())
        count += 1
    if shape is None:
        raise Unreadable("LAKE-031", "there is none")
    digest.update(f"{count} frames of {shape}".encode())
    return PicturesIndex(num_frames=count, height=shape[0], width=shape[1], digest=digest.hexdigest())


def as_videos(
    cameras: Mapping[str, tuple[Pictures, PicturesIndex]], fps: float
) -> dict[str, tuple[VideoSpan, VideoIndex]]:
    """By camera a video in memory that holds its pictures losslessly, named by their path."""
    found = {}
    for camera, (pictures, index) in cameras.items():
        content = lossless_mp4(pictures.frames(), fps)
        to_s = index.num_frames / fps
        span = VideoSpan(path=pictures.path, from_s=0.0, to_s=to_s, read=partial(bytes, content))
        found[camera] = (span, index_bytes(content))
    return found


def lossless_mp4(frames: Iterable[np.ndarray], fps: float) -> bytes:
    """The bytes of an mp4 that holds `frames` (H, W, 3) uint8 exactly, at a constant rate."""
    buffer = io.BytesIO()
    video = LosslessVideo(buffer, fps)
    for image in frames:
        video.add(image)
    video.close()
    return buffer.getvalue()


class LosslessVideo:
    """Writes such an mp4, frame by frame, to a path or a seekable file."""

    def __init__(self, file: Path | io.BytesIO, fps: float) -> None:
        self._container = av.open(file, "w", format="mp4")
        self._fps = Fraction(fps).limit_denominator(RATE_LIMIT)
        self._stream: Any = None
        self._last: av.VideoFrame | None = None
        self._num_frames = 0

    def add(self, pixels: np.ndarray | None) -> None:
        """Append (H, W, 3) uint8, or the last frame again."""
        if pixels is not None:
            self._last = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
        if self._last is None:
            raise ValueError("the first frame of a video has no picture")
        if self._stream is None:
            self._stream = self._open(self._last.width, self._last.height)
        self._last.pts = self._num_frames
        self._last.time_base = 1 / self._fps
        self._container.mux(self._stream.encode(self._last))
        self._num_frames += 1

    def close(self) -> None:
        if self._stream is not None:
            self._container.mux(self._stream.encode(None))
        self._container.close()

    def _open(self, width: int, height: int) -> Any:
        stream = self._container.add_stream("libx264rgb", rate=self._fps, options=LOSSLESS)
        stream.width, stream.height, stream.pix_fmt = width, height, "rgb24"
        stream.codec_context.thread_count = 1  # workers already fill the cores
        stream.codec_context.time_base = 1 / self._fps
        return stream
