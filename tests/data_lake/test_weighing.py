"""Weights: each sample as often as its weight says, evenly over epochs, the same for any number of ranks."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.balance import assign
from data_lake.pack import pack_runs, pack_samples, runs_of
from data_lake.packing import Packing, TokenCount
from data_lake.weighing import weigh
from errors import UserError

TOKENS = TokenCount(tokens_per_view=4, state_tokens=1, action_horizon=2)
CAPACITY = 20
Component = tuple[list[int], float]  # lengths of its samples, weight


def packed(components: list[Component]) -> Packing:
    """Samples of one component after those of another."""
    first, parts = 0, []
    for number, (lengths, _) in enumerate(components):
        firsts, counts, of = runs_of(np.arange(len(lengths)), np.array(lengths, np.int64))
        parts.append((firsts + first, counts, of, np.full(len(firsts), number)))
        first += len(lengths)
    firsts, counts, lengths, component = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    weights = [weight for _, weight in components]
    return pack_runs(firsts, counts, lengths, capacity=CAPACITY, tokens=TOKENS, component_U=component, weights=weights)


def met(packing: Packing, seed: int, epoch: int) -> Counter[int]:
    """How often each sample is met in an epoch."""
    rows = packing.rows(seed, epoch, packing.num_rows)
    return Counter(np.concatenate(rows).tolist())


COMPONENTS = st.lists(
    st.tuples(st.lists(st.integers(1, CAPACITY), min_size=1, max_size=30), st.floats(0.1, 3.5)), min_size=1, max_size=3
)


@given(components=COMPONENTS, seed=st.integers(0, 3))
@settings(max_examples=60)
def test_each_sample_as_often_as_its_stream_says_and_evenly(components: list[Component], seed: int) -> None:
    """Within an epoch the whole part of places / samples, or one more; over seven, at most one apart."""
    packing = packed(components)
    weighing = packing.weighing
    assert weighing is not None
    epochs = [met(packing, seed, epoch) for epoch in range(7)]
    seen = sum(epochs, Counter[int]())
    starts = np.cumsum(weighing.sizes_S) - weighing.sizes_S
    for start, size, places in zip(starts, weighing.sizes_S, weighing.places_S, strict=True):
        members = packing.ids[start : start + size].tolist()
        for epoch in epochs:
            assert sum(epoch[each] for each in members) == places
            assert {epoch[each] for each in members} <= {places // size, places // size + 1}
        totals = [seen[each] for each in members]
        assert max(totals) - min(totals) <= 1 and sum(totals) == 7 * places


@given(components=COMPONENTS)
@settings(max_examples=40)
def test_places_are_the_weight_times_the_samples(components: list[Component]) -> None:
    """To half a place, but for streams so small that the weight would leave none."""
    packing = packed(components)
    assert packing.weighing is not None
    for number, (lengths, weight) in enumerate(components):
        small = sum(count * weight < 1 for count in Counter(lengths).values())
        assert abs(packing.weighing.places_of(number) - weight * len(lengths)) <= 0.5 + small


def test_whole_and_half_weights_by_hand() -> None:
    """Weight 2: twice an epoch. Weight 0.5: half of them, the other half in the next epoch."""
    packing = packed([([5] * 4, 2.0), ([5] * 6, 0.5)])
    epochs = [met(packing, 0, epoch) for epoch in range(4)]
    assert all({epoch[each] for each in range(4)} == {2} for epoch in epochs)
    halves = [{each for each in range(4, 10) if epoch[each]} for epoch in epochs]
    assert [len(half) for half in halves] == [3] * 4
    assert halves[0] | halves[1] == set(range(4, 10)) and halves[0] == halves[2]


@pytest.mark.parametrize("world", [1, 2, 3])
def test_weight_one_means_each_sample_exactly_once_over_ranks(world: int) -> None:
    lengths = [3, 5, 5, 8, 8, 8, 2]
    packing = packed([(lengths[:4], 1.0), (lengths[4:], 1.0)])
    found: list[int] = []
    for step in range(packing.num_rows):
        ids, of, ends = packing.members(0, step, world)  # as many rows a step as ranks: `world` epochs
        rows = np.split(ids, ends[:-1])
        found += [int(each) for rank in range(world) for row in assign(of, ends, world)[rank] for each in rows[row]]
    assert Counter(found) == Counter(dict.fromkeys(range(7), world))


def test_it_is_saved_whole(tmp_path: Path) -> None:
    packing = packed([([5, 7, 7], 1.5), ([5, 5], 1.0)])
    digest = packing.save(tmp_path)
    loaded = Packing.load(tmp_path)
    assert [met(loaded, 1, epoch) for epoch in range(3)] == [met(packing, 1, epoch) for epoch in range(3)]
    (tmp_path / "other").mkdir()
    assert packed([([5, 7, 7], 1.6), ([5, 5], 1.0)]).save(tmp_path / "other") != digest


def test_nothing_at_all_and_weights_that_are_none() -> None:
    assert packed([([], 1.0)]).num_rows == pack_samples(np.array([]), np.array([]), capacity=5, tokens=TOKENS).num_rows
    one = np.ones(1, np.int64)
    for weight in (0.0, -1.0, float("inf"), float("nan"), 1e18, 1e307):
        with pytest.raises(UserError, match="PACK-010"):
            weigh(one, one, one - 1, [weight])
