"""What an mp4 holds, without decoding it: packets and their digests, frame times, keyframes, boxes."""

import io
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import av
import av.error
import numpy as np
from blake3 import blake3

from data_lake.files import content_digest


class VideoUnreadable(Exception):
    """The file is no video, is cut short, or holds no video stream."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VideoIndex:
    """Of the N frames that are shown, not those that an edit list cuts off. times_s (N,) float64: presentation times
    since the first of them, ascending. packets (N, 32) uint8: BLAKE3 of each packet in decoding order; shown_at_s (N,)
    float64: their presentation times. keyframes (K,): frame numbers (-1: cut off before the first), and keyframe_bytes
    (K,): byte offsets of their packets. moov: (offset, size) of the movie box. turned: how a player shows the pictures
    otherwise than they are stored, "" where it does not."""

    digest: str
    num_bytes: int
    codec: str
    height: int
    width: int
    times_s: np.ndarray
    packets: np.ndarray
    shown_at_s: np.ndarray
    keyframes: list[int]
    keyframe_bytes: list[int]
    moov: tuple[int, int]
    turned: str

    def frames_between(self, from_s: float, to_s: float, fps: float) -> np.ndarray:
        """Times of the frames shown in [from_s, to_s), half a frame of slack on both sides."""
        slack = 0.5 / fps
        first, last = np.searchsorted(self.times_s, (from_s - slack, to_s - slack))
        return self.times_s[first:last]

    def span_digest(self, from_s: float, to_s: float, fps: float) -> str:
        """BLAKE3 over the packets shown in [from_s, to_s): the same wherever they were copied to."""
        slack = 0.5 / fps
        inside = (self.shown_at_s >= from_s - slack) & (self.shown_at_s < to_s - slack)
        return blake3(np.ascontiguousarray(self.packets[inside]).tobytes()).hexdigest()


def movie_box(file: BinaryIO, num_bytes: int) -> tuple[int, int]:
    """(offset, size) of the top-level `moov` box (ISO/IEC 14496-12). Raises VideoUnreadable when the boxes do
    not fill the file exactly or none is the movie."""
    place, found = 0, None
    while place + 8 <= num_bytes:
        file.seek(place)
        size, kind = struct.unpack(">I4s", file.read(8))
        if size == 1:
            size = struct.unpack(">Q", file.read(8).ljust(8, b"\0"))[0]
        elif size == 0:
            size = num_bytes - place
        if size < 8 or place + size > num_bytes:
            raise VideoUnreadable(f"box {kind!r} at byte {place:,} ends past the file's {num_bytes:,} bytes")
        if kind == b"moov":
            found = (place, size)
        place += size
    if found is None:
        raise VideoUnreadable("no movie box (the recorder was killed, or this is no mp4)")
    return found


def sample_entry(movie: bytes) -> tuple[str, int, int]:
    """(codec, width, height) as the first visual sample entry of a movie box says (ISO/IEC 14496-12, 8.5.2 and
    12.1.3). Raises VideoUnreadable when there is none."""
    place = movie.find(b"vmhd")
    place = movie.find(b"stsd", max(place, 0))
    entry = movie[place + 12 : place + 12 + 36]  # behind the box's kind, version and flags, and the count
    if place < 0 or len(entry) < 36:
        raise VideoUnreadable("no visual sample entry in the movie box")
    width, height = struct.unpack(">HH", entry[32:36])
    return entry[4:8].decode("latin-1"), width, height


def turning(movie: bytes) -> str:
    """What the matrix in the header of a movie box's first visual track does to its pictures, in words; "" for nothing
    (ISO/IEC 14496-12, 6.2.2 and 8.3.2). Raises VideoUnreadable when the movie ends inside it."""
    header = movie.rfind(b"tkhd", 0, max(movie.find(b"vmhd"), 0))
    if header < 0:
        return ""
    place = header + (56 if movie[header + 4] else 44)  # of the matrix: times have 8 bytes in version 1
    matrix = movie[place : place + 20]
    if len(matrix) < 20:
        raise VideoUnreadable("the track header is cut short")
    a, b, _, c, d = struct.unpack(">5i", matrix)
    if a > 0 and d > 0 and b == c == 0:
        return ""
    how = "mirrored and turned" if a * d < b * c else "turned"
    return f"{how} by {math.degrees(math.atan2(b, a)) % 360:.0f}° clockwise"


def index_video(path: Path, digest: str | None = None) -> VideoIndex:
    """Demux `path` once. digest: of its content, where that is known. Raises VideoUnreadable when it cannot be demuxed
    to its end."""
    num_bytes = path.stat().st_size
    with path.open("rb") as file:
        offset, size = movie_box(file, num_bytes)
        file.seek(offset)
        movie = file.read(size)
    return _index(str(path), num_bytes, (offset, movie), digest or content_digest(path))


def index_bytes(content: bytes) -> VideoIndex:
    """As `index_video`, of an mp4 in memory."""
    file = io.BytesIO(content)
    offset, size = movie_box(file, len(content))
    file.seek(0)
    return _index(file, len(content), (offset, content[offset : offset + size]), blake3(content).hexdigest())


def _index(file: str | BinaryIO, num_bytes: int, moov: tuple[int, bytes], digest: str) -> VideoIndex:
    shown, packets, keys = [], [], []
    try:
        with av.open(file, mode="r") as container:
            if not container.streams.video:
                raise VideoUnreadable("no video stream")
            stream = container.streams.video[0]
            for packet in container.demux(stream):
                if packet.pts is None:
                    continue
                if packet.is_keyframe:
                    keys.append((float(packet.pts * packet.time_base), packet.pos or 0))
                if packet.is_discard:  # an edit list cuts it off: decoded for others, never shown
                    continue
                shown.append(float(packet.pts * packet.time_base))
                packets.append(blake3(packet).digest())
            codec = stream.codec_context
            # PyAV's types do not say it, but a stream without a decoder has no context
            if codec is None:  # pyright: ignore[reportUnnecessaryComparison]
                name, width, height = sample_entry(moov[1])
            else:
                name, width, height = codec.codec.canonical_name, codec.width, codec.height
    except av.error.FFmpegError as error:
        raise VideoUnreadable(f"the demuxer says: {error.strerror}") from error
    if not shown:
        raise VideoUnreadable("no frames")
    origin = min(shown)
    shown_at = np.asarray(shown) - origin
    times = np.sort(shown_at)
    return VideoIndex(
        digest=digest,
        num_bytes=num_bytes,
        codec=name,
        height=height,
        width=width,
        times_s=times,
        packets=np.frombuffer(b"".join(packets), np.uint8).reshape(-1, 32),
        shown_at_s=shown_at,
        keyframes=[int(np.searchsorted(times, at - origin)) if at >= origin else -1 for at, _ in keys],
        keyframe_bytes=[place for _, place in keys],
        moov=(moov[0], len(moov[1])),
        turned=turning(moov[1]),
    )
