"""Images of a view's episode: as asked for, upright RGB, and a failure that names where."""

from dataclasses import replace

import numpy as np
import pytest

from data_lake.images import ImageSource, prepared_images, upright_rgb
from errors import UserError
from tests.data_lake.conftest import CodedLake


def source_of(coded: CodedLake, **changes: str) -> ImageSource:
    fields = {"colour_order": "rgb", "image_orientation": "upright"} | changes
    return ImageSource(
        videos_uri=str(coded.dataset / "videos.lance"),
        videos_version=coded.view.vector["videos"],
        fps=80.0,
        prepare="tests.data_lake.model_functions:prepare_view",
        inputs={"image_size": 16},
        **fields,
    )


def first_pixels(coded: CodedLake, number: int, *wanted: int, **changes: str) -> list[list[int]]:
    """Of some frames of the first view of an episode."""
    span = coded.view.episodes[number].spans[0]
    found = list(prepared_images(source_of(coded, **changes), span, wanted, number))
    assert not any(is_black for _, is_black in found)
    return [image[0, 0].tolist() for image, _ in found]


def test_images_of_the_frames_that_are_wanted(coded: CodedLake) -> None:
    assert first_pixels(coded, 3, 11) == [[4, 11, 100]]
    assert first_pixels(coded, 5, 2, 3, 6) == [[6, 2, 100], [6, 3, 100], [6, 6, 100]]


def test_declared_bgr_is_put_right(coded: CodedLake) -> None:
    assert first_pixels(coded, 3, 11, colour_order="bgr") == [[100, 11, 4]]


def test_upside_down_is_turned_by_half() -> None:
    """0 1 / 2 3 becomes 3 2 / 1 0."""
    image = np.arange(4, dtype=np.uint8).reshape(2, 2, 1).repeat(3, axis=2)
    assert upright_rgb(image, "rgb", "upside_down")[..., 0].tolist() == [[3, 2], [1, 0]]
    assert np.array_equal(upright_rgb(image, "rgb", "upright"), image)


def test_a_failure_names_episode_and_view(coded: CodedLake) -> None:
    span = coded.view.episodes[3].spans[0]
    with pytest.raises(UserError) as caught:
        list(prepared_images(source_of(coded), span, [40], 3))
    assert (caught.value.code, caught.value.where.split(" · ")[:2]) == ("DECODE-004", ["episode 3", "view top"])
    with pytest.raises(UserError, match="PREP-006"):
        list(prepared_images(source_of(coded), replace(span, file_index=9), [0], 3))
