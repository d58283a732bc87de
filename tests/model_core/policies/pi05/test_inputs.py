"""From the loader's arrays to a batch: sorted by length class, normalised, nothing mixed up."""

import numpy as np
import torch

from model_core.policies.pi05.inputs import to_inputs, to_training_inputs
from tests.model_core.samples import MIXED, chunks_of, transform_of


def test_samples_are_sorted_by_length_class_and_keep_their_things() -> None:
    chunks, transform = chunks_of(MIXED), transform_of()
    batch = to_training_inputs(chunks, transform)
    order = batch.order.tolist()
    assert order == [2, 1, 4, 3, 0, 5]
    assert [(c.num_samples, c.num_views, c.num_text) for c in batch.layout.classes] == [
        (1, 0, 3),
        (2, 1, 6),
        (1, 2, 0),
        (2, 2, 3),
    ]
    expected_images = np.concatenate([chunks.images[chunks.image_sample == i] for i in order])
    assert np.array_equal(batch.images_IHWC.numpy(), expected_images)
    assert batch.image_view.tolist() == [1, 0, 0, 1, 0, 1, 0, 1]
    starts = np.cumsum(chunks.text_lengths) - chunks.text_lengths
    words = [chunks.text_tokens[starts[i] : starts[i] + chunks.text_lengths[i]] for i in order]
    assert batch.text_X.tolist() == np.concatenate(words).tolist()
    assert batch.actions_NHA is not None
    assert batch.action_mask_NH is not None
    assert np.array_equal(batch.action_mask_NH.numpy(), chunks.action_mask[order])
    torch.testing.assert_close(batch.actions_NHA, torch.from_numpy(chunks.actions[order] / 2))  # quantiles -2 and 2
    torch.testing.assert_close(batch.proprio_NP, torch.from_numpy(chunks.proprio[order] / 2))


def test_sample_ids_keep_the_order_of_the_loader() -> None:
    batch = to_training_inputs(chunks_of(MIXED), transform_of())
    assert batch.sample_ids.tolist() == list(range(6))
    assert batch.num_samples == 6


def test_acting_needs_no_actions() -> None:
    batch = to_inputs(chunks_of(MIXED), transform_of())
    assert batch.actions_NHA is None
    assert batch.action_mask_NH is None
