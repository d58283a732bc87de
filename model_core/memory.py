"""How much memory training will take, found without a byte of it: weights and one forward pass on the meta device."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from lookup import lookup
from model_core.attention.segments import Segments
from model_core.policies import POLICIES
from model_core.policies.pi05.layout import LengthClass, PrefixLayout
from model_core.specs import PolicySpec, TrainSpec
from model_core.types import TorchBatch

BYTES_PER_WEIGHT_OF_ADAMW = 16  # gradient, two moments and the moving average, float32 each


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Bytes on one rank. optimizer: gradients, AdamW's moments and the moving average. activations: what one
    micro-batch of `num_samples` keeps for the backward pass."""

    weights: int
    optimizer: int
    activations: int
    num_samples: int

    @property
    def total(self) -> int:
        return self.weights + self.optimizer + self.activations


def predict(
    policy: PolicySpec, train: TrainSpec, *, num_samples: int, proprio_dim: int, action_dim: int, vocabulary: int
) -> Memory:
    """For a micro-batch of samples with every view and the longest text: an upper bound that packing may not reach.

    Attention counts as a fused kernel's; caches of the allocator come on top.
    """
    with torch.device("meta"):
        model = lookup(POLICIES, policy.policy, "policy")(
            policy,
            proprio_dim=proprio_dim,
            action_dim=action_dim,
            vocabulary=vocabulary,
            attention=f"{__name__}:fused",
        )
        batch = _fullest(policy, num_samples, proprio_dim, action_dim)
        noise = torch.empty(num_samples, train.num_draws, policy.action_horizon, action_dim)
        time = torch.empty(num_samples, train.num_draws)
    own = {id(tensor.untyped_storage()) for tensor in model.state_dict(keep_vars=True).values()}
    kept: dict[int, torch.UntypedStorage] = {}  # views of one storage count once

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if id(storage) not in own:
            kept[id(storage)] = storage
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        model.loss(batch, noise, time)
    activations = sum(storage.nbytes() for storage in kept.values())
    num_weights = sum(parameter.numel() for parameter in model.parameters())
    return Memory(
        weights=4 * num_weights,
        optimizer=BYTES_PER_WEIGHT_OF_ADAMW * num_weights,
        activations=activations,
        num_samples=num_samples,
    )


def available_bytes(ranks: int) -> int:
    """What there is for one of `ranks` ranks on this machine: its GPU's memory, else its share of the machine's."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_properties(0).total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // ranks


def tokens_per_sample(policy: PolicySpec) -> int:
    """Of a sample with every view and the longest text, its action suffix included."""
    inputs = policy.inputs
    prefix = len(inputs.views) * policy.tokens_per_view + inputs.max_text_tokens + (inputs.state == "token")
    return prefix + policy.action_horizon


def fused(q_TNK: Tensor, k_TNK: Tensor, v_TNK: Tensor, _q_segments: Segments, _k_segments: Segments) -> Tensor:
    """An attention (see `model_core.attention`) that computes nothing and keeps what fused kernels keep."""
    return _Fused.apply(q_TNK, k_TNK, v_TNK)


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q_TNK: Tensor, k_TNK: Tensor, v_TNK: Tensor) -> Tensor:
        out_TNK, logsumexp_TN = torch.empty_like(q_TNK), q_TNK.new_empty(q_TNK.shape[:2], dtype=torch.float32)
        ctx.save_for_backward(q_TNK, k_TNK, v_TNK, out_TNK, logsumexp_TN)
        return out_TNK


def _fullest(policy: PolicySpec, num_samples: int, proprio_dim: int, action_dim: int) -> TorchBatch:
    """`num_samples` samples with nothing missing, on the meta device."""
    inputs, num_views = policy.inputs, len(policy.inputs.views)
    shape = LengthClass(
        num_samples=num_samples,
        num_views=num_views,
        num_text=inputs.max_text_tokens,
        num_state=int(inputs.state == "token"),
        tokens_per_view=policy.tokens_per_view,
    )
    size = inputs.image_size
    return TorchBatch(
        sample_ids=np.arange(num_samples),
        layout=PrefixLayout.of((shape,), "meta"),
        order=torch.empty(num_samples, dtype=torch.int64),
        images_IHWC=torch.empty(num_samples * num_views, size, size, 3, dtype=torch.uint8),
        image_view=torch.empty(num_samples * num_views, dtype=torch.int64),
        text_X=torch.empty(num_samples * inputs.max_text_tokens, dtype=torch.int64),
        proprio_NP=torch.empty(num_samples, proprio_dim),
        actions_NHA=torch.empty(num_samples, policy.action_horizon, action_dim),
        action_mask_NH=torch.empty(num_samples, policy.action_horizon, dtype=torch.bool),
    )
