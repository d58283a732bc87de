"""One rank of a training run: what it reads, what its hooks write."""

import json
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

from data_lake.loader import Loader
from data_lake.packing import Packing
from model_core.training import checkpoint
from model_core.training.state import StepRecord, fresh_state
from model_core.training.trainer import StepTiming
from tasks.spool import read_lines
from tasks.workers.training_run import Bound, MetricLines, Place, StepSource, _fail_once, bind
from tests.tasks import small_lake
from tests.tasks.small_lake import DIM, POLICY, TRAIN, SmallLake

TIMING = StepTiming(input_s=0.1, total_s=0.5)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    torch.set_num_threads(1)
    return small_lake.make(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def bound(lake: SmallLake) -> Bound:
    folder = lake.runtime.path(lake.preprocessed.uri)
    described = json.loads(json.dumps(asdict(POLICY)))
    return bind(described, json.loads((folder / "card.json").read_text()), folder, "sdpa_segments")


def source(lake: SmallLake, bound: Bound, *, rank: int = 0, world: int = 1, rows_per_part: int = 0) -> StepSource:
    packing = Packing.load(lake.runtime.path(lake.packed.uri))
    loader = Loader(lake.runtime.path(lake.preprocessed.uri), packing, seed=0, rows_per_step=TRAIN.rows_per_step)
    place = Place(output=Path("none"), earlier=(), rank=rank, world=world)
    return StepSource(loader=loader, bound=bound, rows_per_part=rows_per_part, place=place)


def record(step: int) -> StepRecord:
    return StepRecord(step=step, loss=float(step), lr=0.1, grad_norm=1.0, num_samples=10, sample_digest=f"d{step}")


def test_ranks_share_the_samples_of_a_step_and_know_all_of_them(lake: SmallLake, bound: Bound) -> None:
    whole = list(source(lake, bound).steps(3, 5))
    shares = [list(source(lake, bound, rank=rank, world=2).steps(3, 5)) for rank in range(2)]
    for number, step in enumerate(whole):
        assert step.step == 3 + number
        for share in shares:
            np.testing.assert_array_equal(share[number].sample_ids, step.sample_ids)
        parts = [part.sample_ids for share in shares for part in share[number].parts]
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.sort(step.sample_ids))


def test_micro_batches_are_whole_rows(lake: SmallLake, bound: Bound) -> None:
    (step,) = source(lake, bound, rows_per_part=1).steps(0, 1)
    assert len(step.parts) == TRAIN.rows_per_step
    np.testing.assert_array_equal(np.concatenate([part.sample_ids for part in step.parts]), step.sample_ids)


def test_busy_cores_are_counted_from_step_to_step(
    bound: Bound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, clock = fresh_state(bound.model, TRAIN), {"perf_counter": 5.0, "process_time": 1.0}
    monkeypatch.setattr(time, "perf_counter", lambda: clock["perf_counter"])
    monkeypatch.setattr(time, "process_time", lambda: clock["process_time"])
    write = MetricLines(tmp_path / "metrics.jsonl", None)
    for step, used_s in enumerate([1.0, 6.0]):
        clock["perf_counter"] += 2
        clock["process_time"] += used_s
        write(state, record(step), TIMING)
    monkeypatch.undo()
    assert [line["cores"] for line in read_lines(tmp_path / "metrics.jsonl")] == [0.5, 3.0]


def test_what_is_bound_fits_the_data(bound: Bound) -> None:
    assert bound.action_shape == (POLICY.action_horizon, DIM)
    assert bound.policy_json["policy"]["policy"] == "pi05"
    assert bound.assets == {}


def test_a_resumed_run_keeps_the_lines_before_and_their_speeds(bound: Bound, tmp_path: Path) -> None:
    state = fresh_state(bound.model, TRAIN)
    (tmp_path / "1").mkdir()
    first = MetricLines(tmp_path / "1" / "metrics.jsonl", None)
    for step in range(4):
        state.history.append(record(step))
        if step != 1:  # a line that was lost with the machine
            first(state, record(step), TIMING)
    state.step = 3
    state.history.pop()
    place = checkpoint.save(tmp_path / "1" / "checkpoints", state, policy={}, assets={})
    (tmp_path / "2").mkdir()
    MetricLines(tmp_path / "2" / "metrics.jsonl", place)(state, record(3), TIMING)
    lines = read_lines(tmp_path / "2" / "metrics.jsonl")
    assert [(line["step"], line["samples_per_s"]) for line in lines] == [(0, 20.0), (1, None), (2, 20.0), (3, 20.0)]
    assert [line["input_wait"] for line in lines] == [0.2, None, 0.2, 0.2]
    assert [line["cores"] is None for line in lines] == [False, True, False, False]
    assert [line["sample_digest"] for line in lines] == ["d0", "d1", "d2", "d3"]


def test_it_fails_once_when_told_to(bound: Bound, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLALOOP_FAIL_AT_STEP", "2")
    state = fresh_state(bound.model, TRAIN)
    state.step = 2
    first, second = (tmp_path / name for name in "12")
    first.mkdir()
    with pytest.raises(RuntimeError, match="told to fail once at step 2"):
        _fail_once(Place(output=first, earlier=(), rank=0, world=1))(state, record(1), TIMING)
    _fail_once(Place(output=second, earlier=(first,), rank=0, world=1))(state, record(1), TIMING)
