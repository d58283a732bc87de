"""Statistics against numpy on the very values, for rows and for pixels."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from data_lake.exports.stats import SHARES, evenly, of_pixels, of_rows

ROWS = hnp.arrays(
    np.float32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=40), elements=st.floats(-1e6, 1e6, width=32)
)


@given(ROWS)
def test_rows_as_numpy_has_them(rows_TD: np.ndarray) -> None:
    found, values = of_rows(rows_TD), rows_TD.astype(np.float64)
    for name, share in SHARES.items():
        np.testing.assert_allclose(found[name], np.quantile(values, share, axis=0))
    np.testing.assert_allclose(found["mean"], values.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(found["std"], values.std(axis=0), atol=1e-6)
    assert found["min"] == values.min(axis=0).tolist() and found["max"] == values.max(axis=0).tolist()
    assert found["count"] == [len(rows_TD)]


def test_quantiles_of_a_union() -> None:
    """Pain D21's figures: 99 rows of 0 and 101 rows from 0 to 100; the weighted mean of the two q99 would be 50."""
    union = np.concatenate([np.zeros(99), np.linspace(0, 100, 101)])[:, None]
    assert abs(of_rows(union)["q99"][0] - 98) < 0.1


@settings(max_examples=40)
@given(hnp.arrays(np.uint8, hnp.array_shapes(min_dims=3, max_dims=3, max_side=6).map(lambda shape: (*shape, 3))))
def test_pixels_as_numpy_has_them(images_THW3: np.ndarray) -> None:
    counts = np.stack([np.bincount(images_THW3[..., channel].reshape(-1), minlength=256) for channel in range(3)])
    found, values = of_pixels(counts, len(images_THW3)), images_THW3.reshape(-1, 3) / 255
    for name, share in SHARES.items():
        np.testing.assert_allclose(np.squeeze(found[name]), np.quantile(values, share, axis=0))
    np.testing.assert_allclose(np.squeeze(found["mean"]), values.mean(axis=0))
    np.testing.assert_allclose(np.squeeze(found["std"]), values.std(axis=0), atol=1e-12)
    np.testing.assert_allclose(np.squeeze(found["max"]), values.max(axis=0))
    assert np.shape(found["min"]) == (3, 1, 1) and found["count"] == [len(images_THW3)]


@given(st.integers(1, 500), st.integers(1, 70))
def test_frames_are_spread_evenly(length: int, most: int) -> None:
    chosen = evenly(length, most)
    assert len(chosen) == min(length, most) and chosen == sorted(set(chosen))
    assert chosen[0] >= 0 and chosen[-1] < length
    assert length > most or chosen == list(range(length))
