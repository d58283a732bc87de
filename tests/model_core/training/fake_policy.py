"""A policy of one linear layer and its data, small enough to check by head; sample i is the number i."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from model_core.specs import TrainSpec
from model_core.training.state import TrainState, fresh_state
from model_core.training.trainer import StepInput

HORIZON, ACTION_DIM = 2, 3
SPEC = TrainSpec(
    num_steps=10,
    rows_per_step=4,
    num_draws=2,
    learning_rate=0.05,
    warmup_steps=2,
    weight_decay=0.01,
    clip_norm=1.0,
    ema_decay=0.9,
    seed=7,
    attention="reference",
    checkpoint_every=3,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FakePart:
    sample_ids: np.ndarray

    @property
    def num_samples(self) -> int:
        return len(self.sample_ids)


class FakePolicy(nn.Module):
    """Predicts the noise from its time and the sample's number. `poison` names samples whose loss is NaN."""

    def __init__(self, poison: frozenset[int] = frozenset()) -> None:
        super().__init__()
        self.linear = nn.Linear(2, HORIZON * ACTION_DIM)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64), persistent=False)
        self.poison = poison

    def loss(self, part: FakePart, noise_NKHA: Tensor, time_NK: Tensor) -> Tensor:
        number_N = torch.from_numpy(part.sample_ids.astype(np.float32)) / 40
        seen_NKC = torch.stack([time_NK, number_N[:, None].expand_as(time_NK)], dim=-1)
        error = self.linear(seen_NKC).view_as(noise_NKHA) - noise_NKHA
        bad_N = torch.tensor([float("nan") if int(i) in self.poison else 1.0 for i in part.sample_ids])
        return error.square().mean(dim=(1, 2, 3)) * bad_N


def ids_of(step: int) -> np.ndarray:
    """Twelve samples a step of forty, wrapping around."""
    return (np.arange(12) + 12 * step) % 40


def inputs(first: int, last: int, *, parts: int = 1, rank: int = 0, world: int = 1) -> Iterator[StepInput]:
    for step in range(first, last):
        mine = np.array_split(ids_of(step), world)[rank]
        yield StepInput(
            step=step, sample_ids=ids_of(step), parts=[FakePart(sample_ids=ids) for ids in np.array_split(mine, parts)]
        )


def state_of(spec: TrainSpec = SPEC, poison: Sequence[int] = ()) -> TrainState:
    torch.manual_seed(spec.seed)
    return fresh_state(FakePolicy(frozenset(poison)), spec)


def with_steps(num_steps: int) -> TrainSpec:
    return replace(SPEC, num_steps=num_steps)
