"""Cut a step's batch into micro-batches of whole packed rows."""

from dataclasses import replace

import numpy as np

from data_lake.samples import Batch


def cut_rows(batch: Batch, rows_per_part: int) -> list[Batch]:
    """The batch in parts of at most `rows_per_part` rows, in order; 0 leaves it whole. An empty batch has no part."""
    num_samples = len(batch.sample_ids)
    if num_samples == 0:
        return []
    num_rows = int(batch.row_of_sample[-1]) + 1
    if rows_per_part <= 0 or rows_per_part >= num_rows:
        return [batch]
    first_rows = np.arange(0, num_rows, rows_per_part)
    starts = np.searchsorted(batch.row_of_sample, first_rows).tolist()
    pairs = zip(starts, [*starts[1:], num_samples], strict=True)
    return [_samples(batch, start, end) for start, end in pairs if end > start]


def _samples(batch: Batch, start: int, end: int) -> Batch:
    """Samples [start, end) as a batch of their own."""
    seen = slice(*np.searchsorted(batch.image_sample, [start, end]))
    text = slice(int(batch.text_lengths[:start].sum()), int(batch.text_lengths[:end].sum()))
    own = slice(start, end)
    bounds = slice(start, end + 1)
    return replace(
        batch,
        sample_ids=batch.sample_ids[own],
        row_of_sample=batch.row_of_sample[own] - batch.row_of_sample[start],
        images=batch.images[seen],
        image_sample=batch.image_sample[seen] - start,
        image_view=batch.image_view[seen],
        text_tokens=batch.text_tokens[text],
        text_lengths=batch.text_lengths[own],
        proprio=batch.proprio[own],
        actions=batch.actions[own],
        action_mask=batch.action_mask[own],
        prefix_lengths=batch.prefix_lengths[own],
        cu_prefix=batch.cu_prefix[bounds] - batch.cu_prefix[start],
        cu_suffix=batch.cu_suffix[bounds] - batch.cu_suffix[start],
        component=batch.component[own],
        proprio_mask=batch.proprio_mask[own],
        action_dim_mask=batch.action_dim_mask[own],
    )
