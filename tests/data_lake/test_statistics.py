"""Statistics: merged ones are those of all rows, quantiles included, as numpy has them."""

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.statistics import Moments, Statistics, Thinned, constant_dimensions

pieces = st.lists(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1, 1)), min_size=1, max_size=20), min_size=1, max_size=6
)


def merged(parts: list[np.ndarray]) -> Statistics:
    total = Statistics.of(parts[0])
    for part in parts[1:]:
        total = total.merged(Statistics.of(part))
    return total


@given(parts=pieces)
@settings(max_examples=150, deadline=None)
def test_merged_equals_all_rows_at_once(parts: list[list[tuple[float, float]]]) -> None:
    arrays = [np.array(part) for part in parts]
    rows, found = np.concatenate(arrays), merged(arrays).as_json()
    assert found["count"] == len(rows)
    np.testing.assert_allclose(found["mean"], rows.mean(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found["std"], rows.std(axis=0), rtol=1e-6, atol=1e-6)
    assert found["min"] == rows.min(axis=0).tolist()
    assert found["max"] == rows.max(axis=0).tolist()
    assert found["q01"] == np.quantile(rows, 0.01, axis=0).tolist()
    assert found["q99"] == np.quantile(rows, 0.99, axis=0).tolist()


def test_quantiles_are_not_averaged() -> None:
    """99 rows of 0 and 0 … 100: the mean of the two q99 is about 50, the truth is 98.01."""
    zeros, ramp = np.zeros((99, 1)), np.arange(101.0)[:, None]
    both = merged([zeros, ramp])
    np.testing.assert_allclose(both.as_json()["q99"], [98.01])
    assert both.as_json() == {**merged([ramp, zeros]).as_json(), "std": both.as_json()["std"]}


def test_numbers_by_head() -> None:
    """1, 3 and 5: mean 3, variance (4 + 0 + 4) / 3."""
    found = Statistics.of(np.array([[1.0], [3.0], [5.0]])).as_json()
    assert (found["mean"], found["min"], found["max"], found["count"]) == ([3.0], [1.0], [5.0], 3)
    np.testing.assert_allclose(found["std"], [(8 / 3) ** 0.5])


def test_float32_rows_are_summed_in_float64() -> None:
    """A million times 0.1 in float32: the mean of the stored value, not of a rounded sum."""
    rows = np.full((1_000_000, 1), 0.1, np.float32)
    np.testing.assert_allclose(Statistics.of(rows).as_json()["mean"], [float(np.float32(0.1))], rtol=1e-12)


def test_constant_dimensions_are_found() -> None:
    rows = np.stack([np.arange(100.0), np.full(100, 1.569), np.full(100, -3.0)], axis=1)
    assert constant_dimensions(Statistics.of(rows).as_json()) == [1, 2]


@given(lengths=st.lists(st.integers(1, 30), min_size=1, max_size=12), limit=st.integers(1, 60))
def test_thinned_rows_lie_evenly_over_all(lengths: list[int], limit: int) -> None:
    thinned, place = Thinned(limit), 0
    for length in lengths:
        thinned.add(np.stack([np.arange(place, place + length), np.zeros(length)], axis=1))
        place += length
    assert thinned.rows()[:, 0].tolist() == list(range(0, place, thinned.stride))
    assert thinned.count == place
    assert thinned.rows().size <= max(limit, 2)
    assert thinned.stride == 1 or 2 * place > limit


def test_ranks_count_what_lies_below() -> None:
    thinned = Thinned()
    thinned.add(np.array([[0.0], [1.0], [1.0], [2.0]]))
    below, up_to = thinned.ranks(np.array([1.0]), np.zeros(1))
    assert (below.tolist(), up_to.tolist()) == ([0.25], [0.75])
    below, up_to = thinned.ranks(np.array([1.0]), np.ones(1))
    assert (below.tolist(), up_to.tolist()) == ([0.0], [1.0])


@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    limits=st.lists(st.integers(2, 40), min_size=6, max_size=6),
)
def test_thinned_rows_of_pieces_are_spread_over_all(lengths: list[int], limits: list[int]) -> None:
    """Merged, they are rows of the pieces in order, as evenly spaced in each, and exact while there are few."""
    whole, begin = Thinned(limit=10_000), 0
    for length, limit in zip(lengths, limits, strict=False):
        piece = Thinned(limit=limit)
        piece.add(np.arange(begin, begin + length, dtype=np.float64).reshape(-1, 1))
        whole.merge(piece)
        begin += length
    kept = whole.rows()[:, 0].astype(int)
    assert whole.count == begin and set(np.diff(kept)) <= set(range(1, 2 * whole.stride))
    if all(length <= limit for length, limit in zip(lengths, limits, strict=False)):
        assert kept.tolist() == list(range(begin))
    copy = Thinned.restored(whole.rows(), stride=whole.stride, count=whole.count)
    assert copy.quantiles(0.5).tolist() == whole.quantiles(0.5).tolist()


@given(rows=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_moments_come_back_from_json_to_the_last_bit(rows: list[float]) -> None:
    found = Moments.of(np.array(rows).reshape(-1, 1) / 3)
    back = Moments.from_json(json.loads(json.dumps(found.as_json())))
    assert back.as_json() == found.as_json() and back.m2_D.dtype == np.float64
