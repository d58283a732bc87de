"""Tiers: pixels come back as they were, JPEG as near as it says, and the same every time."""

import numpy as np
import pyarrow as pa
import pytest

from data_lake.tiers import DECODED, JPEG, MOST_DB, Fidelity, kept, pixels, told


def images(count: int = 4, size: int = 24) -> np.ndarray:
    """Smooth colours, each image another."""
    ramp = np.linspace(0, 200, size)
    plane = ramp[None, :, None] + np.array([0, 20, 40]) + ramp[:, None, None] / 8
    return np.stack([(plane + 3 * n).clip(0, 255) for n in range(count)]).astype(np.uint8)


def test_decoded_pixels_are_exact() -> None:
    contents, fidelity = kept(images(), DECODED)
    column = pa.array([None, *contents], pa.large_binary()).drop_null()
    card = {"images": told(DECODED, fidelity)}
    assert np.array_equal(pixels(column, card).reshape(4, 24, 24, 3), images())
    assert np.array_equal(pixels(column.slice(1, 2), card).reshape(2, 24, 24, 3), images()[1:3])
    assert card == {"images": {"tier": "decoded"}}


def test_jpeg_is_as_near_as_it_says() -> None:
    contents, fidelity = kept(images(), JPEG)
    column, card = pa.array(contents, pa.large_binary()), {"images": told(JPEG, fidelity)}
    found = pixels(column, card)
    assert np.array_equal(found, pixels(column, card))
    error_N = ((found.reshape(4, -1).astype(float) - images().reshape(4, -1)) ** 2).mean(axis=1)
    decibels = 10 * np.log10(255**2 / error_N)
    np.testing.assert_allclose(card["images"]["psnr_mean_db"], decibels.mean())
    np.testing.assert_allclose(card["images"]["psnr_min_db"], decibels.min())
    assert decibels.min() > 38
    assert sum(map(len, contents)) < images().nbytes


def test_one_colour_survives_exactly() -> None:
    _, fidelity = kept(np.full((1, 16, 16, 3), 128, np.uint8), JPEG)
    assert fidelity == Fidelity(num_images=1, total_db=MOST_DB, least_db=MOST_DB)


def test_fidelity_merges() -> None:
    two, one = Fidelity(num_images=2, total_db=80, least_db=38), Fidelity(num_images=1, total_db=46, least_db=46)
    assert two.merged([one]) == Fidelity(num_images=3, total_db=126, least_db=38)


@pytest.mark.parametrize("tier", [DECODED, JPEG])
def test_no_image_is_no_pixel(tier: str) -> None:
    assert pixels(pa.array([], pa.large_binary()), {"images": told(tier, Fidelity())}).size == 0
