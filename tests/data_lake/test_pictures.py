"""Pictures that are no video: looked at once, kept to the last bit, odd ones named."""

import io
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.decode import frames
from data_lake.pictures import index_pictures, lossless_mp4
from data_lake.sources.episode import Pictures
from data_lake.sources.files import Unreadable

RNG = np.random.default_rng(0)


def pictures(*images: np.ndarray) -> Pictures:
    return Pictures(path=Path("demo.hdf5"), frames=lambda: iter(images))


@settings(deadline=None, max_examples=20)
@given(
    st.integers(2, 40), st.integers(2, 40), st.integers(1, 12), st.sampled_from([5.0, 10.0, 29.97, 30000 / 1001, 80.0])
)
def test_decoding_gives_back_what_went_in(height: int, width: int, count: int, fps: float) -> None:
    images = [RNG.integers(0, 256, (height, width, 3), np.uint8) for _ in range(count)]
    file = io.BytesIO(lossless_mp4(images, fps))
    found = list(frames(file, from_s=0.0, to_s=count / fps, fps=fps, wanted=range(count), where="here"))
    assert [place for place, _ in found] == list(range(count))
    assert all(np.array_equal(image, wanted) for (_, image), wanted in zip(found, images, strict=True))


def test_a_rational_rate_stays_itself() -> None:
    content = lossless_mp4([np.zeros((4, 4, 3), np.uint8)] * 4, 30000 / 1001)
    with av.open(io.BytesIO(content)) as container:
        assert container.streams.video[0].average_rate == Fraction(30000, 1001)


def test_the_digest_is_of_pixels_and_their_shape() -> None:
    black, wide = np.zeros((2, 3, 3), np.uint8), np.zeros((3, 2, 3), np.uint8)
    index = index_pictures(pictures(black, black))
    assert (index.num_frames, index.height, index.width) == (2, 2, 3)
    assert index == index_pictures(pictures(black, np.asfortranarray(black)))
    others = [pictures(black), pictures(wide, wide), pictures(black, black + 1)]
    assert len({index.digest, *(index_pictures(other).digest for other in others)}) == 4


@pytest.mark.parametrize(
    ("images", "words"),
    [
        ((), "there is none"),
        ((np.zeros((2, 2, 3), np.float32),), "frame 0 is float32"),
        ((np.zeros((2, 2), np.uint8),), "frame 0"),
        ((np.zeros((2, 2, 4), np.uint8),), "frame 0"),
        ((np.zeros((2, 2, 3), np.uint8), np.zeros((2, 3, 3), np.uint8)), "frame 1"),
    ],
)
def test_what_is_no_picture_is_named(images: tuple[np.ndarray, ...], words: str) -> None:
    with pytest.raises(Unreadable, match=words) as refused:
        index_pictures(pictures(*images))
    assert refused.value.code == "LAKE-031"
