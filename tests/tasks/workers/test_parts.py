"""Micro-batches: the rows of a step, in order, nothing lost and nothing twice."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from data_lake.samples import Batch
from tasks.workers.parts import cut_rows


def batch_of(rows: list[int], views: list[int], texts: list[int]) -> Batch:
    """Rows of so many samples; sample i has views[i] images and texts[i] text tokens, all holding the number i."""
    num = sum(rows)
    views, texts = (np.resize(each, num).astype(np.int32) for each in (views, texts))
    sample = np.arange(num)
    prefix = views * 4 + texts
    return Batch(
        step=3,
        sample_ids=sample + 100,
        row_of_sample=np.repeat(np.arange(len(rows), dtype=np.int32), rows),
        images=np.broadcast_to(np.repeat(sample, views)[:, None, None, None], (views.sum(), 2, 2, 3)).astype(np.uint8),
        image_sample=np.repeat(sample, views).astype(np.int32),
        image_view=np.concatenate([np.arange(v) for v in views] or [np.empty(0)]).astype(np.int32),
        text_tokens=np.repeat(sample, texts).astype(np.int32),
        text_lengths=texts,
        proprio=sample[:, None].astype(np.float32),
        actions=np.broadcast_to(sample[:, None, None], (num, 2, 3)).astype(np.float32),
        action_mask=np.ones((num, 2), bool),
        prefix_lengths=prefix,
        cu_prefix=np.concatenate(([0], np.cumsum(prefix))).astype(np.int32),
        cu_suffix=(2 * np.arange(num + 1)).astype(np.int32),
        component=(sample % 2).astype(np.int32),
        proprio_mask=np.ones((num, 1), bool),
        action_dim_mask=sample[:, None] % np.array([2, 3, 5]) > 0,
    )


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=6),
    st.lists(st.integers(0, 2), min_size=1, max_size=5),
    st.lists(st.integers(0, 3), min_size=1, max_size=5),
    st.integers(0, 7),
)
def test_parts_are_the_batch_again(rows: list[int], views: list[int], texts: list[int], rows_per_part: int) -> None:
    whole = batch_of(rows, views, texts)
    parts = cut_rows(whole, rows_per_part)
    assert len(parts) == (-(-len(rows) // rows_per_part) if rows_per_part else 1)
    for name in (
        "sample_ids",
        "images",
        "image_view",
        "text_tokens",
        "text_lengths",
        "proprio",
        "actions",
        "prefix_lengths",
        "component",
        "proprio_mask",
        "action_dim_mask",
    ):
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))
    for part in parts:
        own = part.sample_ids - 100
        np.testing.assert_array_equal(own[part.image_sample], part.images[:, 0, 0, 0])
        np.testing.assert_array_equal(np.repeat(own, part.text_lengths), part.text_tokens)
        np.testing.assert_array_equal(np.diff(part.cu_prefix), part.prefix_lengths)
        assert part.row_of_sample[0] == part.cu_prefix[0] == part.cu_suffix[0] == 0


def test_a_rank_without_rows_has_no_parts() -> None:
    assert cut_rows(batch_of([], [1], [1]), 2) == []
