"""The loader: one sequence of samples whatever the ranks, restarts and processes; waits that are counted."""

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.loader import Loader
from data_lake.pack import pack_samples
from data_lake.packing import TokenCount
from data_lake.samples import SampleTable
from errors import UserError
from tests.data_lake.conftest import CodedLake
from tests.data_lake.lake_fixture import RECORDED

TOKENS = TokenCount(tokens_per_view=4, state_tokens=1, action_horizon=8)


def loader_of(folder: Path, *, seed: int = 0, rows_per_step: int = 3) -> Loader:
    table = SampleTable(folder)
    words = np.array([len(RECORDED[episode].instruction.split()) for episode in table.column("episode_index")])
    ids, lengths = table.ids(0), TOKENS.length(table.column("num_views"), words)
    packing = pack_samples(ids, lengths[ids], capacity=64, tokens=TOKENS)
    return Loader(folder, packing, seed=seed, rows_per_step=rows_per_step)


@pytest.fixture(scope="module")
def loader(coded: CodedLake) -> Loader:
    return loader_of(coded.out)


def ids_of(loader: Loader, first: int, last: int, rank: int = 0, world: int = 1) -> list[list[int]]:
    return [batch.sample_ids.tolist() for batch in loader.batches(first, last, rank, world)]


def test_each_training_sample_once_an_epoch(loader: Loader) -> None:
    """Epochs follow one another without remainder, and never hold a held-out sample."""
    num_rows = loader.packing.num_rows
    rows = [row.tolist() for step in range(num_rows) for row in loader.rows(step)]  # three epochs
    for epoch in range(3):
        assert sorted(chain(*rows[epoch * num_rows : (epoch + 1) * num_rows])) == list(range(21))
    assert list(chain(*ids_of(loader, 0, num_rows))) == list(chain(*rows))


@given(cut=st.integers(0, 10))
@settings(max_examples=5, deadline=None)
def test_resumed_it_goes_on_as_if_never_stopped(loader: Loader, coded: CodedLake, cut: int) -> None:
    whole = ids_of(loader, 0, 10)
    assert ids_of(loader, 0, cut) + ids_of(loader_of(coded.out), cut, 10) == whole


@pytest.mark.parametrize("world", [1, 2, 3])
def test_ranks_share_the_same_samples(loader: Loader, world: int) -> None:
    whole = ids_of(loader, 0, 6)
    shares = [ids_of(loader, 0, 6, rank, world) for rank in range(world)]
    for step, ids in enumerate(whole):
        assert sorted(id_ for share in shares for id_ in share[step]) == sorted(ids)


def test_two_ranks_with_two_readers_each_read_everything_once_an_epoch(coded: CodedLake) -> None:
    """In processes of their own, started afresh with a pickled loader; each takes every second step of its rank.

    As many steps of two rows as an epoch has rows: two epochs.
    """
    loader = loader_of(coded.out, rows_per_step=2)
    loader.batch(0)  # opens what must not travel
    steps = loader.packing.num_rows
    jobs = [(loader, list(range(start, steps, 2)), rank, 2) for rank in range(2) for start in range(2)]
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = [id_ for ids in pool.map(read_steps_elsewhere, jobs, timeout=60) for id_ in ids]
    assert sorted(found) == sorted([*range(21), *range(21)])


def read_steps_elsewhere(job: tuple[Loader, list[int], int, int]) -> list[int]:
    loader, steps, rank, world = job
    return [int(id_) for step in steps for id_ in loader.batch(step, rank, world).sample_ids]


def test_seeds_give_other_orders(loader: Loader, coded: CodedLake) -> None:
    assert ids_of(loader, 0, 3) != ids_of(loader_of(coded.out, seed=1), 0, 3)


def test_lengths_are_those_that_were_packed(loader: Loader) -> None:
    """Row after row, the tokens of a batch stay within the capacity."""
    for batch in loader.batches(0, 6):
        totals = np.bincount(batch.row_of_sample, weights=batch.prefix_lengths + TOKENS.action_horizon)
        assert totals.max() <= 64


def test_waiting_is_counted(coded: CodedLake) -> None:
    loader = loader_of(coded.out)
    assert loader.input_wait_s == 0
    ids_of(loader, 0, 1)
    assert loader.input_wait_s > 0


def test_stopping_early_leaves_no_thread(loader: Loader) -> None:
    reading = loader.batches(0, 1000)
    next(reading)
    reading.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("loader")]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_packing_of_other_samples_is_refused(loader: Loader, coded: CodedLake, rank: int) -> None:
    """More of them, longer ones, or ones with other actions; whichever rank reads."""
    ids, longer = np.arange(100), TOKENS.length(np.array([2]), np.array([50]))
    of_more = pack_samples(ids, np.full(100, 30), capacity=64, tokens=TOKENS)
    of_longer = pack_samples(ids[:21], np.full(21, longer), capacity=90, tokens=TOKENS)
    of_chunks = replace(loader.packing, tokens=replace(TOKENS, action_horizon=4))
    for packing, told in ((of_more, "holds sample"), (of_longer, "tokens and"), (of_chunks, "tokens and")):
        with pytest.raises(UserError, match=f"LOAD-003: the packing was made for other samples.*{told}"):
            Loader(coded.out, packing, seed=0, rows_per_step=40).batch(0, rank, 2)


def test_an_error_of_the_reader_is_raised_where_batches_are_read(loader: Loader) -> None:
    with pytest.raises(UserError, match="PACK-002"):
        ids_of(loader, 0, 1, rank=0, world=9)


def test_no_steps_no_batches(loader: Loader) -> None:
    assert ids_of(loader, 5, 5) == []
