"""Encoded pictures: as Pillow shows them; what is none, or broken, is named."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from data_lake.sources.files import Unreadable
from data_lake.sources.stills import decoded
from tests.data_lake.rlds_recordings import encoded, pixels

PIXELS = pixels(1, 2)


def test_png_gives_back_what_went_in() -> None:
    found = decoded(encoded(PIXELS, "PNG"), "frame 0")
    assert found.dtype == np.uint8 and np.array_equal(found, PIXELS)


def test_jpeg_is_red_where_it_was_red_and_upright() -> None:
    """D15, D16: a red patch in the top left corner."""
    image = np.zeros((32, 48, 3), np.uint8)
    image[:16, :16] = (255, 0, 0)
    found = decoded(encoded(image, "JPEG"), "frame 0")
    assert found.shape == (32, 48, 3)
    assert np.abs(found[4, 4].astype(int) - (254, 0, 0)).max() <= 2 and found[28, 44].max() <= 2


def test_marks_of_a_camera_turn_nothing() -> None:
    file = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation: turn by 90 degrees
    Image.fromarray(PIXELS[:, :8]).save(file, "JPEG", exif=exif)
    assert decoded(file.getvalue(), "frame 0").shape == (16, 8, 3)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "frame 3 is neither JPEG nor PNG"),
        (b"GIF89a", "neither JPEG nor PNG"),
        (encoded(PIXELS, "GIF"), "neither JPEG nor PNG"),
        (encoded(PIXELS, "JPEG")[:-20], "truncated"),
        (encoded(PIXELS[..., 0], "PNG"), "mode L"),
        (encoded(PIXELS[..., 0].astype(np.uint16) * 256, "PNG"), "mode I;16"),
        (encoded(np.dstack([PIXELS, PIXELS[..., :1]]), "PNG"), "mode RGBA"),
    ],
)
def test_what_is_no_picture_is_named(content: bytes, words: str) -> None:
    with pytest.raises(Unreadable, match=words) as refused:
        decoded(content, "frame 3")
    assert refused.value.code == "LAKE-031" and "0x" not in refused.value.detail


@settings(deadline=None, max_examples=300)
@given(kind=st.sampled_from(["JPEG", "PNG"]), place=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_a_flipped_byte_is_a_picture_or_named(kind: str, place: float, flip: int) -> None:
    content = bytearray(encoded(PIXELS, kind))
    content[int(place * len(content))] ^= flip
    try:
        found, code = decoded(bytes(content), "frame 0"), None
    except Unreadable as odd:
        found, code = PIXELS, odd.code
    assert code in (None, "LAKE-031") and found.dtype == np.uint8 and found.ndim == 3
