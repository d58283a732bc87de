"""From the loader's arrays, or encoded observations, to what the policy computes with."""

from itertools import groupby

import numpy as np
import torch

from model_core.policies.pi05.layout import LengthClass, PrefixLayout
from model_core.transforms import InputTransform
from model_core.types import ChunkArrays, SampleArrays, TorchBatch


def to_inputs(arrays: SampleArrays, transform: InputTransform, device: torch.device | str = "cpu") -> TorchBatch:
    """A batch for `act`, without actions. Raises ValueError when lengths, tokens and images contradict each other."""
    return _arrange(arrays, transform, None, device)


def to_training_inputs(
    arrays: ChunkArrays, transform: InputTransform, device: torch.device | str = "cpu"
) -> TorchBatch:
    """A batch for `loss`: with normalised actions and the mask of those before the episode's end."""
    return _arrange(arrays, transform, arrays, device)


def _arrange(
    arrays: SampleArrays, transform: InputTransform, chunks: ChunkArrays | None, device: torch.device | str
) -> TorchBatch:
    num_views_N = np.bincount(arrays.image_sample, minlength=len(arrays.sample_ids))
    order_N = np.lexsort((arrays.text_lengths, num_views_N))  # stable: ties keep the loader's order
    layout = _layout(arrays, num_views_N, order_N, transform, device)
    place_N = np.empty_like(order_N)
    place_N[order_N] = np.arange(len(order_N))
    order_I = np.lexsort((arrays.image_view, place_N[arrays.image_sample]))
    starts_N = np.cumsum(arrays.text_lengths) - arrays.text_lengths
    texts = [arrays.text_tokens[starts_N[i] : starts_N[i] + arrays.text_lengths[i]] for i in order_N]
    proprio_NP = transform.normalise_proprio(arrays.proprio)[order_N]
    actions = mask = None
    if chunks is not None:
        actions = _to(transform.normalise_actions(chunks.actions, chunks.proprio)[order_N], device)
        mask = _to(chunks.action_mask[order_N], device)
    return TorchBatch(
        sample_ids=arrays.sample_ids,
        layout=layout,
        order=_to(order_N, device),
        images_IHWC=_to(arrays.images[order_I], device),
        image_view=_to(arrays.image_view[order_I].astype(np.int64), device),
        text_X=_to(np.concatenate([arrays.text_tokens[:0], *texts]).astype(np.int64), device),
        proprio_NP=_to(proprio_NP, device),
        actions_NHA=actions,
        action_mask_NH=mask,
    )


def _layout(
    arrays: SampleArrays,
    num_views_N: np.ndarray,
    order_N: np.ndarray,
    transform: InputTransform,
    device: torch.device | str,
) -> PrefixLayout:
    policy = transform.policy
    num_state = int(policy.inputs.state == "token")
    counts = zip(num_views_N[order_N].tolist(), arrays.text_lengths[order_N].tolist(), strict=True)
    layout = PrefixLayout.of(
        tuple(
            LengthClass(
                num_samples=sum(1 for _ in group),
                num_views=views,
                num_text=text,
                num_state=num_state,
                tokens_per_view=policy.tokens_per_view,
            )
            for (views, text), group in groupby(counts)
        ),
        device,
    )
    # The packer's boundaries are the authority; tokens that do not add up to them must not be trained on.
    if layout.segments.lengths != tuple(arrays.prefix_lengths[order_N].tolist()):
        raise ValueError("views, text and state do not add up to the prefix lengths of the packed batch")
    return layout


def _to(array: np.ndarray, device: torch.device | str) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device, non_blocking=True)
