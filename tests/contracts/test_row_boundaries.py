"""Packer, loader and policy agree where each sample begins and ends."""

import numpy as np

from tasks.workers.training_run import bind
from tests.contracts.built import Built


def test_the_policy_cuts_where_the_packer_cut(built: Built) -> None:
    loader, policy = built.loader(), built.records["train"]["identity"]["spec"]["policy"]
    batch = loader.batch(0)
    arranged = bind(policy, loader.table.card, loader.table.folder, "sdpa_segments").collate(batch)
    lengths = np.empty(len(batch.sample_ids), np.int64)
    lengths[arranged.order.numpy()] = arranged.layout.segments.lengths
    np.testing.assert_array_equal(lengths, np.diff(batch.cu_prefix))
    assert arranged.layout.segments.cu.tolist()[-1] == batch.cu_prefix[-1]


def test_no_row_is_longer_than_its_budget_and_the_fill_is_what_was_told(built: Built) -> None:
    loader = built.loader(rows_per_step=built.loader().packing.num_rows)
    batch = loader.batch(0)
    tokens_N = np.diff(batch.cu_prefix) + np.diff(batch.cu_suffix)
    by_row = np.bincount(batch.row_of_sample, weights=tokens_N)
    budget = built.records["pack"]["identity"]["spec"]["pack"]["tokens_per_row"]
    assert by_row.max() <= budget
    assert sorted(batch.sample_ids) == sorted(loader.packing.ids)
    assert by_row.sum() / (len(by_row) * budget) == built.ref("pack")["fill_rate"]
