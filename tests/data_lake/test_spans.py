"""The order `spans`: each sample exactly once, from integers alone, and neighbours close together."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.identity import fingerprint
from data_lake.pack import pack_samples
from data_lake.packing import Packing, TokenCount
from data_lake.spans import phases, spread_rows, turns
from data_lake.specs import PackSpec, SpanShuffle

TOKENS = TokenCount(tokens_per_view=16, state_tokens=1, action_horizon=16)
length_lists = st.lists(st.integers(1, 50), min_size=1, max_size=120)
shuffles = st.builds(SpanShuffle, length=st.integers(1, 20), window=st.integers(1, 40))


def packed(lengths: list[int] | np.ndarray, shuffle: SpanShuffle, capacity: int = 64) -> Packing:
    packing = pack_samples(np.arange(len(lengths)), np.asarray(lengths), capacity=capacity, tokens=TOKENS)
    return replace(packing, shuffle=shuffle)


@given(lengths=length_lists, shuffle=shuffles, seed=st.integers(0, 2**63), per_step=st.integers(1, 9))
@settings(max_examples=150, deadline=None)
def test_each_sample_once_an_epoch(lengths: list[int], shuffle: SpanShuffle, seed: int, per_step: int) -> None:
    packing, stream = packed(lengths, shuffle), []
    for step in range(-(-2 * packing.num_rows // per_step)):
        stream += packing.rows(seed, step, per_step)
    assert max(sum(lengths[id_] for id_ in row) for row in stream) <= 64
    for epoch in range(2):
        rows = stream[epoch * packing.num_rows : (epoch + 1) * packing.num_rows]
        assert sorted(np.concatenate(rows)) == list(range(len(lengths)))


@given(lengths=length_lists, shuffle=shuffles, step=st.integers(0, 10**6), per_step=st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_resuming_is_one_integer(lengths: list[int], shuffle: SpanShuffle, step: int, per_step: int) -> None:
    packing = packed(lengths, shuffle)
    together = packing.rows(7, step, per_step)
    alone = [packing.rows(7, step * per_step + i, 1)[0] for i in range(per_step)]
    assert [row.tolist() for row in together] == [row.tolist() for row in alone]


@given(rows=st.lists(st.integers(1, 30), min_size=1, max_size=12), seed=st.integers(0, 99), data=st.data())
@settings(max_examples=150, deadline=None)
def test_patterns_are_spread_as_one_sorted_list_has_them(rows: list[int], seed: int, data: st.DataObject) -> None:
    """The oracle sorts the times of all uses."""
    rows_P, phases_P = np.array(rows), phases(seed, 0, len(rows))
    listed = sorted(
        (((use + phases_P[p]) / rows_P[p], p) for p in range(len(rows)) for use in range(rows[p])), key=lambda x: x
    )
    first = data.draw(st.integers(0, len(listed)))
    last = data.draw(st.integers(first, len(listed)))
    patterns, before = spread_rows(rows_P, phases_P, first, last)
    assert patterns.tolist() == [p for _, p in listed[first:last]]
    assert before.tolist() == [sum(q == p for _, q in listed[:first]) for p in range(len(rows))]


def test_a_window_meets_its_spans_and_no_others() -> None:
    """1,000 equal samples: the first window of 40 turns, in spans of 10, is at most 4 spans and the turning point."""
    packing = packed([10] * 1000, SpanShuffle(length=10, window=40), capacity=100)
    for window in range(25):
        ids = np.concatenate(packing.rows(3, window, 4))
        runs = np.sort(ids)
        assert 1 + np.count_nonzero(np.diff(runs) != 1) <= 6
        assert not np.array_equal(ids, runs)


def test_epochs_and_seeds_differ() -> None:
    packing = packed([10] * 60, SpanShuffle(length=6, window=12))
    orders = {tuple(np.concatenate(packing.rows(s, e, packing.num_rows))) for s in range(3) for e in range(3)}
    assert len(orders) == 9


def test_every_place_of_an_epoch_is_as_likely_for_a_sample() -> None:
    """χ² over 800 epochs: in which eighth of the epoch sample 17 comes."""
    packing = packed([10] * 96, SpanShuffle(length=7, window=20), capacity=60)
    met = np.zeros(8)
    for epoch in range(800):
        order = np.concatenate(packing.rows(1, epoch, packing.num_rows))
        met[int(np.flatnonzero(order == 17)[0]) * 8 // 96] += 1
    assert ((met - 100) ** 2 / 100).sum() < 29.9  # 7 degrees of freedom: exceeded once in ten thousand


def test_turns_count_on_from_what_was_met() -> None:
    assert turns(np.array([1, 0, 1, 1]), np.array([5, 2])).tolist() == [2, 5, 3, 4]


def test_saved_and_loaded_it_gives_the_same_rows(tmp_path: Path) -> None:
    packing = packed(np.random.default_rng(0).integers(1, 50, 300), SpanShuffle(length=5, window=30))
    digest = packing.save(tmp_path)
    loaded = Packing.load(tmp_path)
    assert loaded.shuffle == packing.shuffle and loaded.save(tmp_path) == digest
    assert digest != replace(packing, shuffle="uniform").save(tmp_path)
    assert [row.tolist() for row in loaded.rows(3, 17, 5)] == [row.tolist() for row in packing.rows(3, 17, 5)]


@pytest.mark.parametrize("shuffle", [SpanShuffle(length=8, window=64), SpanShuffle(length=8, window=65)])
def test_the_order_is_part_of_identity_only_where_it_is_not_the_default(shuffle: SpanShuffle) -> None:
    plain = PackSpec(tokens_per_row=64)
    assert fingerprint(plain) == fingerprint({"tokens_per_row": 64})
    assert fingerprint(replace(plain, shuffle=shuffle)) not in (fingerprint(plain), fingerprint(replace(shuffle)))
