"""Keyed permutations: bijections of any size, invertible, different for each key, without a favourite place."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.permutation import Permutation, derive_key

keys = st.builds(derive_key, st.integers(0, 2**64), st.integers(0, 100))


@given(size=st.integers(1, 3000), key=keys)
@settings(max_examples=200, deadline=None)
def test_every_place_is_taken_once(size: int, key: bytes) -> None:
    places = Permutation(size=size, key=key).forward(np.arange(size))
    assert sorted(places.tolist()) == list(range(size))


@given(size=st.integers(1, 2**40), key=keys, offset=st.integers(0, 2**40))
@settings(max_examples=200, deadline=None)
def test_inverse_leads_back(size: int, key: bytes, offset: int) -> None:
    indices = (offset + np.arange(7)) % size
    permutation = Permutation(size=size, key=key)
    assert np.array_equal(permutation.inverse(permutation.forward(indices)), indices)
    assert np.array_equal(permutation.forward(permutation.inverse(indices)), indices)


def test_an_index_alone_goes_where_it_goes_among_others() -> None:
    permutation = Permutation(size=1000, key=derive_key(7))
    alone = [int(permutation.forward(np.array([index]))[0]) for index in range(20)]
    assert alone == permutation.forward(np.arange(20)).tolist()


def test_the_same_key_gives_the_same_permutation_everywhere() -> None:
    """Pinned: another result would make a resumed run read other samples."""
    assert Permutation(size=10, key=derive_key(0, 0, "rows")).forward(np.arange(10)).tolist() == [
        7,
        8,
        4,
        1,
        5,
        2,
        9,
        3,
        6,
        0,
    ]


def test_keys_of_different_parts_differ() -> None:
    assert len({derive_key(1, 23), derive_key(12, 3), derive_key(123), derive_key("1", 2, 3)}) == 4


@pytest.mark.parametrize("size", [2, 5, 16])
def test_no_place_is_favoured(size: int) -> None:
    """Over 1,500 keys each index is about equally often at each place: within five standard deviations."""
    counts = np.zeros((size, size))
    for seed in range(1500):
        counts[np.arange(size), Permutation(size=size, key=derive_key(seed)).forward(np.arange(size))] += 1
    expected = 1500 / size
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


@pytest.mark.parametrize("index", [-1, 10])
def test_an_index_outside_is_refused(index: int) -> None:
    with pytest.raises(IndexError, match="outside"):
        Permutation(size=10, key=derive_key(0)).forward(np.array([index]))


def test_an_empty_permutation_moves_nothing() -> None:
    assert Permutation(size=0, key=derive_key(0)).forward(np.array([], np.int64)).size == 0
