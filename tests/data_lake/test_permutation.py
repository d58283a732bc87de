"""Keyed permutations: bijections of any size, several in one call, without a favourite place."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.permutation import Permutations, derive_key

seeds = st.integers(0, 2**64)


def permuted(size: int, *parts: int | str, indices: np.ndarray | None = None, name: int = 0) -> np.ndarray:
    indices = np.arange(size) if indices is None else indices
    permutations = Permutations(sizes_C=np.array([size]), names_C=np.array([name]), key=derive_key(*parts))
    return permutations.forward(np.zeros(len(indices), np.int64), indices)


@given(size=st.integers(1, 3000), seed=seeds)
@settings(max_examples=200, deadline=None)
def test_every_place_is_taken_once(size: int, seed: int) -> None:
    assert sorted(permuted(size, seed).tolist()) == list(range(size))


@given(size=st.integers(1, 2**50), offset=st.integers(0, 2**50), seed=seeds)
@settings(max_examples=200, deadline=None)
def test_neighbours_of_a_vast_range_stay_inside_and_apart(size: int, offset: int, seed: int) -> None:
    indices = np.unique((offset + np.arange(50)) % size)
    places = permuted(size, seed, indices=indices)
    assert len(set(places.tolist())) == len(indices) and places.min() >= 0 and places.max() < size


@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=8), seed=seeds)
@settings(max_examples=100, deadline=None)
def test_several_in_one_call_are_each_what_they_are_alone(sizes: list[int], seed: int) -> None:
    permutations = Permutations(
        sizes_C=np.array(sizes), names_C=10 + np.arange(len(sizes)), key=derive_key(seed, "class")
    )
    classes = np.repeat(np.arange(len(sizes)), sizes)
    indices = np.concatenate([np.arange(size) for size in sizes])
    order = np.random.default_rng(0).permutation(len(classes))
    together = np.empty(len(classes), np.int64)
    together[order] = permutations.forward(classes[order], indices[order])
    alone = [permuted(size, seed, "class", name=10 + c) for c, size in enumerate(sizes)]
    assert together.tolist() == np.concatenate(alone).tolist()


def test_the_same_key_gives_the_same_permutation_everywhere() -> None:
    """Pinned: another result would make a resumed run read other samples."""
    assert permuted(10, 0, 0, "rows").tolist() == [9, 0, 7, 1, 8, 5, 3, 4, 2, 6]


def test_keys_of_different_parts_differ() -> None:
    keys = [derive_key(1, 23), derive_key(12, 3), derive_key(123), derive_key("1", 2, 3)]
    assert len({key.tobytes() for key in keys}) == 4


@pytest.mark.parametrize("size", [2, 3, 5, 16])
def test_no_place_is_favoured(size: int) -> None:
    """Over 1,500 keys each index is about equally often at each place: within five standard deviations."""
    counts = np.zeros((size, size))
    for seed in range(1500):
        counts[np.arange(size), permuted(size, seed)] += 1
    expected = 1500 / size
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_neighbours_do_not_stay_neighbours() -> None:
    """Over 200 keys, pairs (i, i + 1) of 1,000 lie at each distance as often as two places drawn at random."""
    near = sum(int((np.abs(np.diff(permuted(1000, seed))) <= 10).sum()) for seed in range(200))
    expected = 200 * 999 * (1 - (990 * 989) / (1000 * 999))
    assert abs(near - expected) < 5 * np.sqrt(expected)


def test_all_orders_of_few_are_met_equally() -> None:
    orders = [tuple(permuted(4, seed).tolist()) for seed in range(4800)]
    counts = np.array([orders.count(order) for order in set(orders)])
    assert len(counts) == 24 and np.abs(counts - 200).max() < 5 * np.sqrt(200)


@pytest.mark.parametrize("index", [-1, 10])
def test_an_index_outside_is_refused(index: int) -> None:
    with pytest.raises(IndexError, match="outside"):
        permuted(10, 0, indices=np.array([index]))


def test_an_empty_permutation_moves_nothing() -> None:
    assert permuted(0, 0).size == 0
