"""Decoding: the right frames by number, byte for byte from lossless video, and failures that say what they are."""

import io
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.decode import frames
from errors import UserError
from tests.data_lake.lake_fixture import coded_image, mp4

NTSC = 30000 / 1001


@pytest.fixture(scope="module")
def noise() -> list[np.ndarray]:
    return list(np.random.default_rng(0).integers(0, 256, (23, 18, 34, 3), dtype=np.uint8))


@pytest.fixture(scope="module")
def lossless(noise: list[np.ndarray]) -> bytes:
    return mp4(noise, 80)


def decoded(content: bytes, wanted: list[int], *, fps: float = 80.0, from_s: float = 0.0, to_s: float | None = None):
    return list(frames(io.BytesIO(content), from_s=from_s, to_s=to_s, fps=fps, wanted=wanted))


def test_lossless_frames_are_byte_for_byte(noise: list[np.ndarray], lossless: bytes) -> None:
    found = decoded(lossless, list(range(23)))
    assert [index for index, _ in found] == list(range(23))
    assert all(np.array_equal(image, noise[index]) for index, image in found)


@given(
    start=st.integers(0, 22),
    wanted=st.sets(st.integers(0, 22), min_size=1).map(sorted),
)
@settings(max_examples=60, deadline=None)
def test_any_frames_of_any_span(noise: list[np.ndarray], lossless: bytes, start: int, wanted: list[int]) -> None:
    """Frame i of a span that begins at frame `start` is frame start + i of the file."""
    inside = [index for index in wanted if start + index < 23]
    found = decoded(lossless, inside, from_s=start / 80, to_s=23 / 80)
    assert [index for index, _ in found] == inside
    assert all(np.array_equal(image, noise[start + index]) for index, image in found)


def test_ordinary_video_comes_close() -> None:
    """yuv420p of flat images: a few units off, in the right order."""
    images = [np.full((32, 32, 3), 10 * number, np.uint8) for number in range(12)]
    for index, image in decoded(mp4(images, 20, codec="libx264"), [3, 4, 11], fps=20):
        assert np.abs(image.astype(int) - 10 * index).max() <= 4


def test_a_rate_that_is_no_decimal_does_not_drift() -> None:
    """Spans cut from 500 joined pieces of 29.97 fps video: each still begins at its own first frame.

    Times are summed as a writer with rounded seconds would have them.
    """
    images = [coded_image(number // 3, number % 3, "top") for number in range(600)]
    content, from_s = mp4(images, NTSC), 0.0
    for piece in range(0, 200, 13):
        from_s = np.float32(piece * 3 / NTSC)
        found = decoded(content, [0, 1, 2], fps=29.97, from_s=float(from_s))
        assert [tuple(image[0, 0, :2]) for _, image in found] == [(piece + 1, frame) for frame in range(3)]


def test_only_wanted_frames_are_given_and_none_is_fine(lossless: bytes) -> None:
    assert decoded(lossless, []) == []
    assert len(decoded(lossless, [22])) == 1


def test_a_missing_frame_is_named(lossless: bytes) -> None:
    with pytest.raises(UserError, match="DECODE-004.*2 of the wanted indices, the first is 23"):
        decoded(lossless, [21, 22, 23, 24])


def test_frames_of_the_next_episode_are_never_given(lossless: bytes) -> None:
    """The span ends after ten frames; the eleventh is somebody else's."""
    assert len(decoded(lossless, [9], to_s=10 / 80)) == 1
    with pytest.raises(UserError, match="DECODE-004"):
        decoded(lossless, [10], to_s=10 / 80)


@pytest.mark.parametrize("fps", [40.0, 60.0])
def test_too_low_a_rate_is_noticed(lossless: bytes, fps: float) -> None:
    with pytest.raises(UserError, match="DECODE-005"):
        decoded(lossless, list(range(8)), fps=fps)


def test_too_high_a_rate_is_noticed(lossless: bytes) -> None:
    with pytest.raises(UserError, match="DECODE-004"):
        decoded(lossless, list(range(8)), fps=160)


def test_an_absent_codec_is_no_corruption(lossless: bytes) -> None:
    """The same file with a codec name that nobody knows."""
    with pytest.raises(UserError, match="DECODE-001"):
        decoded(lossless.replace(b"avc1", b"zzz9"), [0])


@pytest.mark.parametrize("spoilt", ["no mp4", "cut"])
def test_a_broken_file_is_called_broken(lossless: bytes, spoilt: str) -> None:
    content = b"not a video at all" * 100 if spoilt == "no mp4" else lossless[: len(lossless) // 2]
    with pytest.raises(UserError, match="DECODE-002"):
        decoded(content, [0])


def test_nothing_stays_open(lossless: bytes, tmp_path: Path) -> None:
    """A hundred spans, half of them left early: no more open files than before."""
    path = tmp_path / "video.mp4"
    path.write_bytes(lossless)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(100):
        with path.open("rb") as file:
            reading = frames(file, from_s=0, to_s=None, fps=80, wanted=[0, 5])
            next(reading)
            if number % 2:
                reading.close()
    assert len(os.listdir("/proc/self/fd")) <= before + 1


def test_labelled_recording(shared_data: Path) -> None:
    """A real AV1 file of 40 frames at 20 fps: every frame is there, each another picture."""
    with (shared_data / "video-labeled-frames-av1" / "labeled_frames_video.mp4").open("rb") as file:
        found = list(frames(file, from_s=0, to_s=None, fps=20, wanted=list(range(40))))
    assert [index for index, _ in found] == list(range(40))
    assert all((a[1] != b[1]).any() for a, b in pairwise(found))
