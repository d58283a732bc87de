"""Everything of a training run that must survive it, and nothing else."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from model_core.specs import TrainSpec
from model_core.training.optim import average_weights, make_optimizer


@dataclass(slots=True, kw_only=True)
class StepRecord:
    """What one step gave; the same on every repetition of the run (no clock in it).

    `loss` and `grad_norm` may be non-finite: then `skipped` is true and no weight has changed.
    """

    step: int
    loss: float
    lr: float
    grad_norm: float
    num_samples: int
    sample_digest: str
    skipped: bool = False


@dataclass(slots=True, kw_only=True)
class TrainState:
    """`model` is a policy's network with `loss(part, noise_NKHA, time_NK) -> (N,)`. `step` is the number of steps done.
    `skipped_in_row` counts non-finite steps since the last good one.

    `sample_digest` chains SHA-256 over the sample ids of all steps, so equal digests prove equal order.
    """

    model: nn.Module
    ema: dict[str, Tensor]
    optimizer: torch.optim.Optimizer
    step: int = 0
    samples_seen: int = 0
    updates: int = 0
    skipped_in_row: int = 0
    sample_digest: str = ""
    history: list[StepRecord] = field(default_factory=list)


def device_of(model: nn.Module) -> torch.device:
    """Where its weights are."""
    return next(model.parameters()).device


def fresh_state(model: nn.Module, spec: TrainSpec) -> TrainState:
    """The state before the first step."""
    return TrainState(model=model, ema=average_weights(model), optimizer=make_optimizer(model, spec))
