"""Pure red stays pure red, whatever order a message's bytes are in; what is not said is not guessed."""

from typing import Any

import numpy as np
import pytest

from data_lake.sources.bag_images import COMPRESSED, RAW, rgb
from data_lake.sources.files import Unreadable
from tests.data_lake.bag_recordings import encoded, of, raw_image

RED = np.full((4, 6, 3), (255, 0, 0), np.uint8)
RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (5, 7, 3), np.uint8)


def still(pixels: np.ndarray, said: str, kind: str = "PNG") -> Any:
    return of("sensor_msgs/msg/CompressedImage", header=None, format=said, data=encoded(pixels, kind))


@pytest.mark.parametrize("padding", [0, 5])
@pytest.mark.parametrize(
    ("encoding", "order"), [("rgb8", [0, 1, 2]), ("bgr8", [2, 1, 0]), ("rgba8", [0, 1, 2, 3]), ("bgra8", [2, 1, 0, 3])]
)
def test_raw_pixels_come_out_as_rgb(encoding: str, order: list[int], padding: int) -> None:
    opaque = np.concatenate([PIXELS, np.full((5, 7, 1), 9, np.uint8)], axis=2)
    found = rgb(RAW, raw_image(opaque[:, :, order], encoding, padding))
    assert found.dtype == np.uint8 and np.array_equal(found, PIXELS)


def test_grey_is_grey_in_three_channels() -> None:
    grey = PIXELS[:, :, :1]
    assert np.array_equal(rgb(RAW, raw_image(grey, "mono8", 3)), np.repeat(grey, 3, axis=2))
    assert np.array_equal(rgb(COMPRESSED, still(grey[:, :, 0], "mono8; png compressed ")), np.repeat(grey, 3, axis=2))


@pytest.mark.parametrize("said", ["png", "", "rgb8; png compressed bgr8", "bgr8; png compressed bgr8"])
def test_what_a_viewer_shows(said: str) -> None:
    assert np.array_equal(rgb(COMPRESSED, still(PIXELS, said)), PIXELS)


@pytest.mark.parametrize("encoding", ["rgb8", "bgr8"])
def test_the_encoder_was_given_rgb(encoding: str) -> None:
    """OpenCV's encoder takes BGR: given RGB it writes red as blue, and `format` says that it was given RGB."""
    assert np.array_equal(rgb(COMPRESSED, still(RED[:, :, ::-1], f"{encoding}; png compressed rgb8")), RED)


def test_pure_red_survives_jpeg() -> None:
    for said, pixels in (
        ("jpeg", RED),
        ("bgr8; jpeg compressed bgr8", RED),
        ("rgb8; jpeg compressed rgb8", RED[..., ::-1]),
    ):
        found = rgb(COMPRESSED, still(np.ascontiguousarray(pixels), said, "JPEG"))
        assert np.abs(found.astype(int) - RED).max() <= 2, said


def test_an_alpha_channel_is_dropped() -> None:
    opaque = np.concatenate([PIXELS, np.full((5, 7, 1), 9, np.uint8)], axis=2)
    assert np.array_equal(rgb(COMPRESSED, still(opaque, "png")), PIXELS)


@pytest.mark.parametrize(
    ("msgtype", "message", "code", "words"),
    [
        (RAW, raw_image(PIXELS, "8UC3"), "LAKE-126", "'8UC3'"),
        (RAW, raw_image(PIXELS[:, :, :2], "yuv422"), "LAKE-126", "'yuv422'"),
        (COMPRESSED, still(PIXELS, "bgr8; jpeg compressed"), "LAKE-126", "'bgr8; jpeg compressed'"),
        (COMPRESSED, still(PIXELS, "16UC1; compressedDepth png"), "LAKE-126", "compressedDepth"),
        (COMPRESSED, still(PIXELS[:, :, 0].astype(np.uint16), "png"), "LAKE-126", "I;16"),
        (COMPRESSED, still(PIXELS, "tiff", "TIFF"), "LAKE-126", "neither JPEG nor PNG"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_named(msgtype: str, message: Any, code: str, words: str) -> None:
    with pytest.raises(Unreadable) as refused:
        rgb(msgtype, message)
    assert refused.value.code == code and words in refused.value.detail


@pytest.mark.parametrize("change", [{"height": 6}, {"step": 20}, {"height": 0}, {"width": 0}])
def test_lines_that_are_not_there(change: dict[str, int]) -> None:
    message = raw_image(PIXELS, "rgb8")
    for name, value in change.items():
        setattr(message, name, value)
    with pytest.raises(Unreadable) as refused:
        rgb(RAW, message)
    assert refused.value.code == "LAKE-031"


def test_a_cut_picture_is_broken() -> None:
    message = still(PIXELS, "png")
    message.data = message.data[:-30]
    with pytest.raises(Unreadable) as refused:
        rgb(COMPRESSED, message)
    assert refused.value.code == "LAKE-031"
