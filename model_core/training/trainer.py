"""The training loop: `fit` restores, repeats `train_step` and saves.

The loss of a step is the mean over all its samples, over all ranks and micro-batches: each part adds its sum
divided by the step's global count, and gradients are summed over ranks. So world and micro-batch size change
the order of additions only.
"""

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from errors import UserError
from model_core.specs import TrainSpec
from model_core.training.checkpoint import restore
from model_core.training.draws import draw
from model_core.training.optim import clip, gradients, sum_over_ranks, update_average
from model_core.training.schedule import learning_rate
from model_core.training.state import StepRecord, TrainState, device_of

MAX_SKIPPED_IN_ROW = 10


class Part(Protocol):
    """Some packed rows of a step, as the policy's `loss` takes them; samples in packed order."""

    @property
    def sample_ids(self) -> np.ndarray: ...

    @property
    def num_samples(self) -> int: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class StepInput:
    """One step: `sample_ids` of all ranks in packed order, and this rank's `parts` of them."""

    step: int
    sample_ids: np.ndarray
    parts: Sequence[Part]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTiming:
    """Seconds of one step: waiting for input, and all of it."""

    input_s: float
    total_s: float


Hook = Callable[[TrainState, StepRecord, StepTiming], None]


def fit(
    state: TrainState,
    spec: TrainSpec,
    inputs: Callable[[int, int], Iterable[StepInput]],
    *,
    action_shape: tuple[int, int],
    resume_from: Path | None = None,
    hooks: Sequence[Hook] = (),
    save: Callable[[TrainState], None],
) -> None:
    """Restore, loop, save: train `state` up to `spec.num_steps`, from `resume_from`'s step or from its own.

    `inputs(first, last)` yields steps [first, last). `save` is called every `checkpoint_every` steps and at the
    end; `hooks` after every step, before the save. action_shape: (H, A) of the noise.
    Raises `UserError` TRAIN-003 after ten steps in a row whose loss or gradient is not finite.
    """
    if resume_from is not None:
        restore(resume_from, state)
    state.model.train()
    steps = iter(inputs(state.step, spec.num_steps))
    while state.step < spec.num_steps:
        started = time.perf_counter()
        step_input = next(steps)
        waited = time.perf_counter()
        record = train_step(state, spec, step_input, action_shape)
        timing = StepTiming(input_s=waited - started, total_s=time.perf_counter() - started)
        for hook in hooks:
            hook(state, record, timing)
        if state.skipped_in_row >= MAX_SKIPPED_IN_ROW:
            raise _diverged(state.step)
        if state.step == spec.num_steps or state.step % spec.checkpoint_every == 0:
            save(state)


def train_step(state: TrainState, spec: TrainSpec, step_input: StepInput, action_shape: tuple[int, int]) -> StepRecord:
    """One update of all weights. A step whose loss or gradient is not finite changes none and says so."""
    if step_input.step != state.step:
        raise ValueError(f"the loader gave step {step_input.step} where {state.step} was due")
    rate = learning_rate(state.step, peak=spec.learning_rate, warmup_steps=spec.warmup_steps, num_steps=spec.num_steps)
    state.optimizer.zero_grad(set_to_none=True)
    total = torch.zeros((), dtype=torch.float64, device=device_of(state.model))
    num_samples = len(step_input.sample_ids)
    for part in step_input.parts:
        losses_N = sample_losses(state, spec, part, action_shape)
        (losses_N.sum() / num_samples).backward()
        total += losses_N.detach().sum(dtype=torch.float64) / num_samples
    grads = gradients(state.model)
    sum_over_ranks(grads)
    sum_over_ranks([total])
    norm = clip(grads, spec.clip_norm)
    skipped = not (math.isfinite(norm) and math.isfinite(total.item()))
    if not skipped:
        for group in state.optimizer.param_groups:
            group["lr"] = rate
        state.optimizer.step()
        update_average(state.ema, state.model, spec.ema_decay, state.updates)
        state.updates += 1
    return _advance(state, step_input.sample_ids, loss=total.item(), norm=norm, rate=rate, skipped=skipped)


def sample_losses(state: TrainState, spec: TrainSpec, part: Part, action_shape: tuple[int, int]) -> Tensor:
    """(N,) losses of one part, with the noise and times that belong to its samples at this step."""
    horizon, action_dim = action_shape
    noise_NKHA, time_NK = draw(
        spec.seed, state.step, part.sample_ids, num_draws=spec.num_draws, horizon=horizon, action_dim=action_dim
    )
    policy: Any = state.model
    return policy.loss(part, torch.from_numpy(noise_NKHA), torch.from_numpy(time_NK))


def _advance(
    state: TrainState, sample_ids: np.ndarray, *, loss: float, norm: float, rate: float, skipped: bool
) -> StepRecord:
    chained = state.sample_digest.encode() + np.ascontiguousarray(sample_ids, "<i8").tobytes()
    state.sample_digest = hashlib.sha256(chained).hexdigest()
    record = StepRecord(
        step=state.step,
        loss=loss,
        lr=rate,
        grad_norm=norm,
        num_samples=len(sample_ids),
        sample_digest=state.sample_digest,
        skipped=skipped,
    )
    state.step += 1
    state.samples_seen += len(sample_ids)
    state.skipped_in_row = state.skipped_in_row + 1 if skipped else 0
    state.history.append(record)
    return record


def _diverged(step: int) -> UserError:
    return UserError(
        "TRAIN-003",
        f"loss or gradient was not finite in {MAX_SKIPPED_IN_ROW} steps in a row",
        where=f"steps {step - MAX_SKIPPED_IN_ROW} to {step - 1}",
        done="these steps changed no weight; the last checkpoint is intact",
        next_step="lower train.learning_rate, or look for extreme values in the data: vlaloop doctor",
    )
