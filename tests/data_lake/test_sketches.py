"""Summaries merge exactly in their moments, and in quantiles within the error that is stated."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.sketches import Summary


def test_quantiles_are_not_averaged() -> None:
    """99 rows of 0 and 0 … 100: the mean of the two q99 is about 50, the truth is 98.01."""
    zeros, ramp = np.zeros((99, 1)), np.arange(101.0)[:, None]
    both = Summary.of([zeros]).merged([Summary.of([ramp])])
    assert abs(both.statistics_json()["q99"][0] - 98.01) < 1
    np.testing.assert_allclose(both.statistics_json()["mean"], [np.concatenate([zeros, ramp]).mean()])


@pytest.mark.parametrize("kind", ["normal", "lumpy", "walks", "rare"])
def test_ranks_of_a_million_rows_are_within_a_per_mille(kind: str) -> None:
    """Merged from forty groups, as numpy counts them on the union."""
    random = np.random.default_rng(3)
    parts = []
    for _ in range(40):
        rows = random.normal(size=(25_000, 1)).astype(np.float32)
        if kind == "lumpy":
            rows = rows.round(1)
        elif kind == "walks":
            rows = rows.cumsum(axis=0)
        elif kind == "rare":
            rows = np.where(rows > 2.2, np.float32(1), np.float32(0))
        parts.append(rows)
    first, *others = (Summary.of(np.array_split(part, 50)) for part in parts)
    found, union = first.merged(others), np.sort(np.concatenate(parts)[:, 0])
    for share in (0.01, 0.99):
        value = found.quantiles(share)[0, 0]
        below, up_to = (np.searchsorted(union, value, side) / len(union) for side in ("left", "right"))
        assert below - 0.001 <= share <= up_to + 0.001


def test_the_same_rows_give_the_same_bytes() -> None:
    rows = np.random.default_rng(0).normal(size=(20_000, 3))
    first, again = (Summary.of(np.array_split(rows, 7)) for _ in range(2))
    assert first.as_json() == again.as_json()
    assert first.merged([again]).as_json() == again.merged([first]).as_json()


@given(st.lists(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_merged_moments_are_those_of_all_rows_and_survive_being_kept(parts: list[list[float]]) -> None:
    pieces = [np.array(part, np.float32)[:, None] for part in parts]
    first, *others = (Summary.of([piece]) for piece in pieces)
    merged = first.merged(others)
    kept = Summary.from_json(json.loads(json.dumps(merged.as_json())))
    assert kept.as_json() == merged.as_json()
    rows, found = np.concatenate(pieces).astype(np.float64), kept.statistics_json()
    assert (found["count"], found["min"], found["max"]) == (len(rows), [rows.min()], [rows.max()])
    np.testing.assert_allclose(found["mean"], rows.mean(axis=0), rtol=1e-9, atol=1e-6)
    assert rows.min() <= found["q01"][0] <= found["q99"][0] <= rows.max()
