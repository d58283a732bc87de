"""Small pictures are those of the episode and the frame, upright and in RGB whatever the source declared."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from data_lake.thumbnails import WIDTH, _jpeg, thumbnails
from tests.data_lake.conftest import CodedLake
from tests.data_lake.lake_fixture import coded_image


def pixels_of(uri: str) -> np.ndarray:
    kind, _, content = uri.partition(",")
    assert kind == "data:image/jpeg;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))).convert("RGB"), np.int16)


@pytest.mark.parametrize("order", ["rgb", "bgr"])
def test_each_frame_is_the_wanted_one(coded: CodedLake, order: str) -> None:
    """JPEG keeps a flat colour within a few steps; red tells the episode, green the frame."""
    episode = coded.view.episodes[3]
    meaning = {**coded.view.meaning, "colour_order": order}
    videos = (str(coded.dataset / "videos.lance"), coded.view.vector["videos"])
    found = thumbnails(episode.spans[0], [0, 6, 11], videos=videos, meaning=meaning)
    for uri, frame in zip(found, (0, 6, 11), strict=True):
        expected = coded_image(3, frame, "top").astype(np.int16)
        expected = expected if order == "rgb" else expected[:, :, ::-1]
        assert np.abs(pixels_of(uri) - expected).max() <= 3


def test_large_pictures_become_small_and_keep_their_shape() -> None:
    assert pixels_of(_jpeg(np.zeros((480, 640, 3), np.uint8))).shape == (120, WIDTH, 3)
    assert pixels_of(_jpeg(np.zeros((24, 32, 3), np.uint8))).shape == (24, 32, 3)
