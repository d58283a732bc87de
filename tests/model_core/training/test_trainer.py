"""The loop: resuming, ranks and micro-batches change nothing, and what is not finite changes no weight."""

import json
import math
import multiprocessing
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist

from errors import UserError
from model_core.training import checkpoint
from model_core.training.state import StepRecord, TrainState
from model_core.training.trainer import StepInput, fit, train_step
from tests.model_core.training.fake_policy import ACTION_DIM, HORIZON, SPEC, FakePart, ids_of, inputs, state_of

SHAPE = (HORIZON, ACTION_DIM)
POLICY = {"policy": {}, "card": {}}


class Killed(Exception):
    """Stands for a kill -9 between two steps."""


def run(tmp_path: Path, *, kill_at: int | None = None, resume: bool = False, spec=SPEC, **shape) -> TrainState:
    state = state_of(spec)

    def kill(state: TrainState, record: StepRecord, timing) -> None:
        assert timing.total_s >= timing.input_s >= 0
        if record.step + 1 == kill_at:
            raise Killed

    def save(state: TrainState) -> None:
        checkpoint.save(tmp_path, state, policy=POLICY, assets={})

    found = checkpoint.newest_complete([tmp_path], print) if resume else None
    fit(state, spec, partial(inputs, **shape), action_shape=SHAPE, resume_from=found, hooks=[kill], save=save)
    return state


def weights(state: TrainState) -> list[bytes]:
    tensors = [*state.model.state_dict().values(), *state.ema.values()]
    return [tensor.numpy().tobytes() for tensor in tensors]


def test_ten_steps_equal_six_a_kill_and_four_bit_for_bit(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")
    with pytest.raises(Killed):
        run(tmp_path / "cut", kill_at=8)
    resumed = run(tmp_path / "cut", resume=True)
    assert resumed.history == whole.history
    assert [record.step for record in whole.history] == list(range(10))
    assert weights(resumed) == weights(whole)
    final = "step-000010"
    for path in (tmp_path / "whole" / final).iterdir():
        assert path.read_bytes() == (tmp_path / "cut" / final / path.name).read_bytes(), path.name


def test_loss_falls(tmp_path: Path) -> None:
    history = run(tmp_path, spec=replace(SPEC, num_steps=60)).history
    early, late = (np.mean([record.loss for record in part]) for part in (history[:10], history[-10:]))
    assert late < early


@pytest.mark.parametrize("parts", [2, 3, 12])
def test_micro_batches_give_the_same_step(tmp_path: Path, parts: int) -> None:
    whole, cut = run(tmp_path / "1"), run(tmp_path / "n", parts=parts)
    for left, right in zip(whole.history, cut.history, strict=True):
        assert left.loss == pytest.approx(right.loss, rel=1e-6)
        assert left.grad_norm == pytest.approx(right.grad_norm, rel=1e-5)
        assert left.sample_digest == right.sample_digest


def rank_of_two(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    state = run(Path(folder) / f"rank{rank}", rank=rank, world=2)
    history = [checkpoint.to_json(record) for record in state.history]
    (Path(folder) / f"{rank}.json").write_text(json.dumps(history))
    dist.destroy_process_group()


def test_two_ranks_give_the_steps_of_one(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=rank_of_two, args=(rank, str(tmp_path))) for rank in range(2)]
    for each in ranks:
        each.start()
    alone = run(tmp_path / "alone")
    for each in ranks:
        each.join(60)
        assert each.exitcode == 0
    for rank in range(2):
        history = json.loads((tmp_path / f"{rank}.json").read_text())
        for left, right in zip(alone.history, history, strict=True):
            assert left.loss == pytest.approx(right["loss"], rel=1e-6)
            assert left.sample_digest == right["sample_digest"]


def test_a_sample_has_the_mean_of_the_step_as_its_share() -> None:
    state, spec = state_of(), replace(SPEC, clip_norm=1e9)
    uneven = [FakePart(sample_ids=ids_of(0)[:1]), FakePart(sample_ids=ids_of(0)[1:])]
    record = train_step(state, spec, StepInput(step=0, sample_ids=ids_of(0), parts=uneven), SHAPE)
    whole = train_step(state_of(), spec, next(inputs(0, 1)), SHAPE)
    assert record.loss == pytest.approx(whole.loss, rel=1e-6)
    assert record.grad_norm == pytest.approx(whole.grad_norm, rel=1e-5)


def test_a_step_that_is_not_finite_changes_nothing_and_is_recorded(tmp_path: Path) -> None:
    state = state_of(poison=[13])  # sample 13 comes at steps 1, 4, 7 …
    batches = inputs(0, 3)
    train_step(state, SPEC, next(batches), SHAPE)
    before = weights(state)
    record = train_step(state, SPEC, next(batches), SHAPE)
    assert record.skipped and math.isnan(record.loss)
    assert weights(state) == before
    assert not train_step(state, SPEC, next(batches), SHAPE).skipped
    assert (state.step, state.updates, state.samples_seen, state.skipped_in_row) == (3, 2, 36, 0)
    saved = checkpoint.save(tmp_path, state, policy=POLICY, assets={})
    assert "NaN" not in (saved / "history.jsonl").read_text()
    again = state_of()
    checkpoint.restore(saved, again)
    assert [each.skipped for each in again.history] == [False, True, False]


def test_ten_such_steps_in_a_row_end_the_run_and_no_nan_is_saved(tmp_path: Path) -> None:
    state = state_of(spec := replace(SPEC, num_steps=40), poison=range(40))
    with pytest.raises(UserError, match="TRAIN-003") as caught:
        fit(state, spec, inputs, action_shape=SHAPE, save=lambda state: None)
    assert "steps 0 to 9" in caught.value.where
    with torch.no_grad():
        state.model.linear.weight[0, 0] = float("inf")
    with pytest.raises(UserError, match=r"TRAIN-004: linear.weight"):
        checkpoint.save(tmp_path, state, policy=POLICY, assets={})
    assert checkpoint.newest_complete([tmp_path], print) is None


def test_a_loader_that_gives_another_step_is_refused() -> None:
    with pytest.raises(ValueError, match="gave step 1 where 0 was due"):
        train_step(state_of(), SPEC, next(inputs(1, 2)), SHAPE)
