"""Sharing rows among ranks: each row once, tokens and squared lengths about the same for all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.balance import assign
from errors import UserError
from tests.data_lake.test_packing import length_lists, packed


@given(lengths=length_lists, seed=st.integers(0, 100), step=st.integers(0, 1000), per_step=st.integers(3, 12))
@settings(max_examples=100, deadline=None)
def test_the_same_samples_for_any_world_size(lengths: list[int], seed: int, step: int, per_step: int) -> None:
    ids, sizes, ends = packed(lengths).members(seed, step, per_step)
    assert sizes.tolist() == [lengths[id_] for id_ in ids]
    for world in (1, 2, 3):
        shares = assign(sizes, ends, world)
        assert sorted(place for share in shares for place in share) == list(range(per_step))
        assert all(share == sorted(share) for share in shares)
        assert max(map(len, shares)) <= -(-per_step // world)


def test_assign_balances_tokens_and_squares() -> None:
    """A long sample costs more than short ones of the same sum: 8 and 2 x 1 go apart from 2 x 5."""
    lengths = np.array([8, 2, 8, 2, 5, 5, 5, 5])
    assert assign(lengths, np.array([2, 4, 6, 8]), 2) == [[0, 2], [1, 3]]


def test_balance_over_ranks() -> None:
    """Random rows over four ranks: tokens and squared lengths of the fullest within 2 % of the mean."""
    packing = packed(np.random.default_rng(0).integers(20, 400, 5000), 2048)
    _, lengths, ends = packing.members(0, 0, 64)
    rows = np.split(lengths, ends[:-1])
    for cost in (lambda row: row.sum(), lambda row: (row**2).sum()):
        loads = np.array([sum(cost(rows[place]) for place in share) for share in assign(lengths, ends, 4)])
        assert loads.max() / loads.mean() <= 1.02


def test_fewer_rows_than_ranks_is_refused() -> None:
    with pytest.raises(UserError, match="PACK-002"):
        assign(np.array([3]), np.array([1]), 2)
