"""Packing: each training sample exactly once an epoch, for any world size, and the same again after a restart."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.pack import pack_samples
from data_lake.packing import Packing, TokenCount
from errors import UserError

TOKENS = TokenCount(tokens_per_view=16, state_tokens=1, action_horizon=16)
length_lists = st.lists(st.integers(1, 50), min_size=1, max_size=120)


def packed(lengths: list[int] | np.ndarray, capacity: int = 64, first_id: int = 0) -> Packing:
    return pack_samples(first_id + np.arange(len(lengths)), np.asarray(lengths), capacity=capacity, tokens=TOKENS)


@given(lengths=length_lists, seed=st.integers(0, 2**63), per_step=st.integers(1, 9))
@settings(max_examples=150, deadline=None)
def test_each_sample_once_an_epoch(lengths: list[int], seed: int, per_step: int) -> None:
    """Two epochs follow one another without remainder: each id is in the first rows once, in the next again."""
    packing, stream = packed(lengths, first_id=1000), []
    for step in range(-(-2 * packing.num_rows // per_step)):
        stream += packing.rows(seed, step, per_step)
    assert max(sum(lengths[id_ - 1000] for id_ in row) for row in stream) <= 64
    for epoch in range(2):
        rows = stream[epoch * packing.num_rows : (epoch + 1) * packing.num_rows]
        assert sorted(np.concatenate(rows)) == list(range(1000, 1000 + len(lengths)))


@given(lengths=length_lists, seed=st.integers(0, 100), step=st.integers(0, 10**9), per_step=st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_resuming_is_one_integer(lengths: list[int], seed: int, step: int, per_step: int) -> None:
    """Rows of a step are those that single-row steps give, however far training has come."""
    packing = packed(lengths)
    together = packing.rows(seed, step, per_step)
    alone = [packing.rows(seed, step * per_step + i, 1)[0] for i in range(per_step)]
    assert [row.tolist() for row in together] == [row.tolist() for row in alone]


def test_epochs_and_seeds_differ() -> None:
    packing = packed([10] * 60)
    sequences = {
        tuple(np.concatenate(packing.rows(seed, epoch, packing.num_rows))) for seed in range(3) for epoch in range(3)
    }
    assert len(sequences) == 9


def test_row_mates_are_random_within_a_length() -> None:
    """Among 60 equal samples in rows of 6, sample 0 meets most others within 60 epochs: 5 new faces each."""
    packing = packed([10] * 60, capacity=60)
    mates: Counter[int] = Counter()
    for epoch in range(60):
        (row,) = (row for row in packing.rows(0, epoch, packing.num_rows) if 0 in row)
        mates.update(int(id_) for id_ in row if id_)
    assert len(mates) >= 55  # each of 59 is expected five times, and missed with probability 0.6 %
    assert max(mates.values()) <= 20


@pytest.mark.parametrize(
    ("lengths", "capacity"),
    [((52, 53, 53, 55), 856), ((52, 53, 53, 55), 1024), ((36, 37, 39, 52, 53, 53, 55), 880)],
)
def test_fill_on_lengths_like_those_of_tiny(lengths: tuple[int, ...], capacity: int) -> None:
    """Two views of 16 tokens (some with one), 3 to 6 words, a state token, 16 actions: at least 97 % full."""
    packing = packed(np.random.default_rng(0).choice(lengths, 4570), capacity)
    assert packing.fill_rate >= 0.97


def test_no_sample_is_fine_until_somebody_wants_one(tmp_path: Path) -> None:
    packing = packed([])
    assert (packing.num_rows, packing.num_samples, packing.fill_rate) == (0, 0, 1.0)
    packing.save(tmp_path)
    with pytest.raises(UserError, match="PACK-003"):
        Packing.load(tmp_path).rows(0, 0, 1)


def test_saved_and_loaded_it_gives_the_same_rows(tmp_path: Path) -> None:
    packing = packed(np.random.default_rng(0).integers(1, 50, 300))
    digest = packing.save(tmp_path)
    loaded = Packing.load(tmp_path)
    assert [row.tolist() for row in loaded.rows(3, 17, 5)] == [row.tolist() for row in packing.rows(3, 17, 5)]
    described = json.loads((tmp_path / "packed.json").read_text())
    assert described["digest"] == digest == loaded.save(tmp_path)
    assert sum(rows for _, rows in described["fill_by_row"]) == described["num_rows"] == packing.num_rows
    assert loaded.tokens == TOKENS


def test_no_class_is_always_met_by_the_same_others() -> None:
    """On lengths of vision-language-action data half of the classes meet 40 or more others, and none fewer than 3."""
    random = np.random.default_rng(0)
    lengths = random.integers(1, 4, 100_000) * 256 + random.integers(20, 201, 100_000) + 50
    packing = packed(lengths, 4096)
    met: dict[int, set[int]] = {}
    for start, end in pairwise(packing.entries_P1.tolist()):
        classes = packing.class_E[start:end].tolist()
        for c in classes:
            met.setdefault(c, set()).update(classes)
    assert len(met) == len(packing.lengths_C)
    assert np.median([len(others) for others in met.values()]) >= 40
    assert min(len(others) for others in met.values()) >= 4


def test_pack_mates_are_not_neighbours_in_the_data() -> None:
    """Samples of one episode (200 neighbouring ids) share a row no more often than chance has it."""
    packing, together, pairs = packed([10] * 10_000, capacity=60), 0, 0
    for row in packing.rows(0, 0, packing.num_rows):
        episode = row // 200
        together += int((episode[:, None] == episode[None, :]).sum() - len(row)) // 2
        pairs += len(row) * (len(row) - 1) // 2
    expected = pairs * 199 / 9999
    assert abs(together - expected) < 5 * np.sqrt(expected)


def test_who_shares_a_row_is_uniform() -> None:
    """χ² over 600 epochs: how often sample 0 shares its row of 6 with each of 59 others, 600 * 5 / 59 expected."""
    packing, met = packed([10] * 60, capacity=60), np.zeros(60)
    for epoch in range(600):
        rows = np.stack(packing.rows(5, epoch, packing.num_rows))
        met[rows[(rows == 0).any(axis=1)][0]] += 1
    expected = 600 * 5 / 59
    assert ((met[1:] - expected) ** 2 / expected).sum() < 103  # 58 degrees of freedom: exceeded once in 4,000


def test_fill_by_row() -> None:
    """8 + 2 fills a row of 10, the 7 stays alone."""
    packing = packed([8, 2, 7], capacity=10)
    assert packing.fill_by_row() == [(1.0, 1), (0.7, 1)]
    assert packing.fill_rate == 17 / 20


def test_length_of_a_sample() -> None:
    """Two views of 16, six words, one state token, 16 actions."""
    assert TOKENS.length(np.array([2, 1]), np.array([6, 6])).tolist() == [55, 39]
    assert TOKENS.prefix(np.array([2]), np.array([6])).tolist() == [39]


@pytest.mark.slow
def test_ten_thousand_random_packings() -> None:
    """Every id once, no row too full, and the sum of tokens kept; never fewer rows than the tokens need."""
    random = np.random.default_rng(0)
    for case in range(10_000):
        capacity = int(random.integers(1, 80))
        lengths = random.integers(1, capacity + 1, random.integers(1, 30))
        packing = packed(lengths, capacity)
        rows = packing.rows(case, 0, packing.num_rows)
        assert sorted(np.concatenate(rows)) == list(range(len(lengths)))
        assert max(int(lengths[row].sum()) for row in rows) <= capacity
        assert packing.num_rows >= -(-int(lengths.sum()) // capacity)
        assert packing.num_tokens == lengths.sum()
