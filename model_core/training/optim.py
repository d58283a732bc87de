"""What one optimisation step is made of: AdamW, clipping, the moving average of weights, sums over ranks."""

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from model_core.specs import TrainSpec

BETAS = (0.9, 0.95)


def make_optimizer(model: nn.Module, spec: TrainSpec) -> torch.optim.AdamW:
    """AdamW that decays matrices only: not biases, norms or other vectors."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim >= 2], "weight_decay": spec.weight_decay},
        {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=spec.learning_rate, betas=BETAS, fused=True)


def sum_over_ranks(tensors: Iterable[Tensor]) -> None:
    """Replace each tensor by its sum over all ranks, in one message; nothing to do on a single rank."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return
    held = list(tensors)
    flat = torch.cat([tensor.reshape(-1) for tensor in held])
    dist.all_reduce(flat)
    parts = flat.split([tensor.numel() for tensor in held])
    for tensor, part in zip(held, parts, strict=True):
        tensor.copy_(part.view_as(tensor))


def gradients(model: nn.Module) -> list[Tensor]:
    """One per trained parameter, zeros where a step gave none, so that every rank sums the same list."""
    found = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            found.append(parameter.grad)
    return found


def clip(grads: list[Tensor], max_norm: float) -> float:
    """Scale the gradients in place to at most `max_norm` (L2, all together); returns the norm before.

    A norm that is not finite scales nothing: the caller skips the step.
    """
    norm = torch.nn.utils.get_total_norm(grads).item()
    if max_norm < norm < float("inf"):
        for grad in grads:
            grad.mul_(max_norm / (norm + 1e-6))
    return norm


def average_weights(model: nn.Module) -> dict[str, Tensor]:
    """The start of the moving average: a copy of all weights and buffers, by name."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


@torch.no_grad()
def update_average(average: dict[str, Tensor], model: nn.Module, decay: float, updates: int) -> None:
    """average += (1 - d) (weights - average), d = min(decay, (1 + updates) / (10 + updates)): young averages
    follow closely. What is not floating point is copied."""
    weight = 1.0 - min(decay, (1 + updates) / (10 + updates))
    for name, value in model.state_dict().items():
        if value.is_floating_point():
            average[name].lerp_(value, weight)
        else:
            average[name].copy_(value)
