"""Packets, times and boxes of an mp4."""

import os
import struct
from contextlib import suppress
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_lake.video import VideoUnreadable, index_bytes, index_video, turning
from tests.data_lake.recordings import FPS, SIZE, colour, join_videos, write_video


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("parts")
    paths = [folder / f"{length}.mp4" for length in (8, 12)]
    for number, path in enumerate(paths):
        write_video(path, [colour(number, frame) for frame in range(int(path.stem))])
    return paths


def test_times_keyframes_and_movie_box(parts: list[Path]) -> None:
    index = index_video(parts[1])
    assert index.times_s == pytest.approx([frame / FPS for frame in range(12)])
    assert index.keyframes == [0, 5, 10]
    assert (index.codec, index.height, index.width) == ("h264", SIZE, SIZE)
    content = parts[1].read_bytes()
    offset, size = index.moov
    assert content[offset + 4 : offset + 8] == b"moov" and struct.unpack(">I", content[offset : offset + 4]) == (size,)
    assert index.keyframe_bytes == sorted(index.keyframe_bytes) and index.num_bytes == len(content)


def test_packets_are_the_same_wherever_they_were_copied_to(parts: list[Path], tmp_path: Path) -> None:
    joint = tmp_path / "joint.mp4"
    join_videos(joint, parts, [8, 12])
    index = index_video(joint)
    alone = [index_video(part) for part in parts]
    assert index.span_digest(0.0, 0.8, FPS) == alone[0].span_digest(0.0, 0.8, FPS)
    assert index.span_digest(0.8, 2.0, FPS) == alone[1].span_digest(0.0, 1.2, FPS)
    assert alone[0].span_digest(0.0, 0.8, FPS) != alone[1].span_digest(0.0, 0.8, FPS)
    assert index.frames_between(0.8, 2.0, FPS) == pytest.approx([frame / FPS for frame in range(8, 20)])


def test_a_cut_video_is_unreadable(parts: list[Path], tmp_path: Path) -> None:
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(parts[0].read_bytes())
    os.truncate(cut, cut.stat().st_size - 40)
    with pytest.raises(VideoUnreadable, match="ends past"):
        index_video(cut)


@pytest.mark.parametrize("content", [b"", b"not a video at all", b"\0\0\0\x10ftypisom\0\0\0\0"])
def test_what_is_no_video(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.mp4"
    path.write_bytes(content)
    for look in (lambda: index_video(path), lambda: index_bytes(content)):
        with pytest.raises(VideoUnreadable):
            look()


@given(st.binary(max_size=90), st.integers(0, 80))
def test_a_track_header_of_any_bytes(header: bytes, end: int) -> None:
    """Is read, or is said to be cut short."""
    movie = (b"tkhd" + header + b"vmhd")[: end + 8]
    with suppress(VideoUnreadable):
        assert isinstance(turning(movie), str)


@pytest.mark.parametrize(
    ("degrees", "hflip", "turned"),
    [
        (0, False, ""),
        (90, False, "turned by 270° clockwise"),
        (180, False, "turned by 180° clockwise"),
        (270, False, "turned by 90° clockwise"),
        (0, True, "mirrored and turned by 180° clockwise"),
    ],
)
def test_a_header_that_turns_pictures(degrees: int, hflip: bool, turned: str, tmp_path: Path) -> None:
    """As phones write it: the pixels lie on their side, players stand them up. PyAV counts the other way round."""
    path = tmp_path / "turned.mp4"
    with av.open(path, "w") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        if turned:
            stream.set_display_rotation(degrees, hflip)
        for _ in range(3):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), format="rgb24")))
        container.mux(stream.encode(None))
    assert index_video(path).turned == turned
