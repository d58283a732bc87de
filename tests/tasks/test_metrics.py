"""Metrics reach MLflow once per step, whatever happened to it meanwhile; training never notices."""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mlflow.exceptions import MlflowException

from tasks.metrics import Forwarder, Spool, forward, last_step
from tasks.registry import MAX_PARAM, Registry, connect
from tests.waiting import eventually


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    root = tmp_path_factory.mktemp("mlflow")
    return connect(root / "lake", root / "home")


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(
        path=tmp_path / "metrics.jsonl", slot=f"train/{tmp_path.name}", title="t", settings={"train": {"seed": 0}}
    )


def write(path: Path, steps: range, **changed: Any) -> None:
    with path.open("a") as stream:
        for step in steps:
            line = {
                "step": step,
                "loss": 1.0 / (step + 1),
                "lr": 0.1,
                "grad_norm": 1.0,
                "samples_per_s": 5.0,
                "input_wait": 0.1,
                "skipped": False,
                "time": 1e9 + step,
            }
            stream.write(json.dumps(line | changed) + "\n")


def steps_at(registry: Registry, spool: Spool, name: str = "loss") -> list[int]:
    run_id = registry.run_of(spool.slot, "")
    return [metric.step for metric in registry.client.get_metric_history(run_id, name)]


def test_each_step_goes_out_once_in_one_run(registry: Registry, spool: Spool) -> None:
    assert forward(registry, spool) == 0
    write(spool.path, range(200))
    with spool.path.open("a") as stream:
        stream.write('{"step": 200, "lo')  # a line that is being written
    assert forward(registry, spool) == 200
    assert forward(registry, spool) == 0
    assert steps_at(registry, spool) == list(range(200))


def test_a_resumed_training_continues_after_the_last_step_sent(
    registry: Registry, spool: Spool, tmp_path: Path
) -> None:
    write(spool.path, range(8))
    forward(registry, spool)
    again = Spool(path=tmp_path / "second.jsonl", slot=spool.slot, title="t", settings=spool.settings)
    write(again.path, range(6), samples_per_s=None, time=2e9)
    write(again.path, range(6, 10), time=2e9)
    assert forward(registry, again) == 2
    assert steps_at(registry, spool) == list(range(10))
    assert last_step(registry, registry.run_of(spool.slot, "")) == 9


def test_a_skipped_step_is_an_event_and_no_metric(registry: Registry, spool: Spool) -> None:
    write(spool.path, range(2))
    write(spool.path, range(2, 3), loss=None, grad_norm=None, skipped=True)
    forward(registry, spool)
    assert steps_at(registry, spool) == [0, 1]
    tags = registry.client.get_run(registry.run_of(spool.slot, "")).data.tags
    assert "not finite" in tags["event.step-000002"]


def test_long_settings_go_as_a_file_and_changed_ones_as_tags(registry: Registry, spool: Spool) -> None:
    settings = {"train": {"learning_rate": 0.1}, "note": "x" * 10_000}
    forward(registry, Spool(path=spool.path, slot=spool.slot, title="t", settings=settings))
    changed = {"train": {"learning_rate": 0.2}, "note": "x" * 10_000}
    forward(registry, Spool(path=spool.path, slot=spool.slot, title="t", settings=changed))
    run_id = registry.run_of(spool.slot, "")
    run = registry.client.get_run(run_id)
    assert run.data.params["train.learning_rate"] == "0.1"
    assert run.data.tags["vlaloop.train.learning_rate"] == "0.2"
    assert len(run.data.params["spec_sha256"]) == 64 and "note" not in run.data.params
    assert all(len(value) <= MAX_PARAM for value in run.data.params.values())
    assert [each.path for each in registry.client.list_artifacts(run_id)] == ["spec.json"]


def forwarder(spool: Spool, home: Path, connect: Callable[[Path, Path], Registry]) -> Forwarder:
    return Forwarder(spool, lake=home, home=home, period_s=0.05, connect=connect)


def test_while_mlflow_is_away_nothing_is_raised_and_the_next_training_sends_it(
    registry: Registry, spool: Spool, tmp_path: Path
) -> None:
    def away(_lake: Path, _home: Path) -> Registry:
        raise MlflowException("database is locked")

    write(spool.path, range(3))
    told = forwarder(spool, tmp_path, away).start().close(timeout_s=10)
    assert "database is locked" in told
    assert steps_at(registry, spool) == []
    other = Spool(path=tmp_path / "other.jsonl", slot=spool.slot + "-other", title="t", settings={})
    write(other.path, range(2))
    assert forwarder(other, tmp_path, lambda _lake, _home: registry).start().close() == ""
    assert steps_at(registry, other) == [0, 1]
    assert steps_at(registry, spool) == [0, 1, 2]
    assert list((tmp_path / "metrics-pending").iterdir()) == []


def test_an_outage_in_between_loses_and_repeats_nothing(registry: Registry, spool: Spool, tmp_path: Path) -> None:
    calls = iter([MlflowException("500"), OSError("refused"), None])

    def flaky(_lake: Path, _home: Path) -> Registry:
        if fault := next(calls):
            raise fault
        return registry

    running = forwarder(spool, tmp_path, flaky).start()
    write(spool.path, range(4))
    eventually(lambda: steps_at(registry, spool))
    write(spool.path, range(4, 7))
    assert running.close() == ""
    assert steps_at(registry, spool) == list(range(7))


def test_a_server_that_never_answers_holds_nobody_up(spool: Spool, tmp_path: Path) -> None:
    never = threading.Event()

    def hang(_lake: Path, _home: Path) -> Registry:
        never.wait(30)
        raise MlflowException("gave up")

    write(spool.path, range(1))
    running = forwarder(spool, tmp_path, hang).start()
    started = time.monotonic()
    assert "no answer" in running.close(timeout_s=0.3)
    assert time.monotonic() - started < 2
    never.set()
