"""Runs that nobody would execute, runs whose process was killed: both end as a person expects, on a real server."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from flows import adopter as module
from flows import trace
from flows.adopter import ENTRYPOINTS, Adopter
from flows.api import PrefectApi
from flows.deploy import module_path
from flows.places import ROOT, Places
from flows.services.alive import engines
from tests.flows.toy_flows import toy
from tests.waiting import eventually

LEAVES = "import sys; from pathlib import Path; from flows import trace; trace.leave(Path(sys.argv[1]), 'r1')"
TOYS = {
    "toy": "tests.flows.toy_flows.toy",
    "toy-wait": "tests.flows.toy_flows.toy_wait",
    "toy-hold": "tests.flows.toy_flows.toy_hold",
}


class FakeApi:
    """Answers with the runs that it was given, and keeps the states that were set."""

    def __init__(self, *runs: dict[str, Any]) -> None:
        self.runs = list(runs)
        self.states: list[tuple[str, str]] = []

    def flow_runs(self, run_filter: dict[str, Any], *, flows: list[str], limit: int = 50) -> list[dict[str, Any]]:
        return [run for run in self.runs if run["state"]["type"] in run_filter["state"]["type"]["any_"]]

    def set_state(self, run_id: str, kind: str, name: str, message: str) -> str:
        self.states.append((run_id, name))
        return "ACCEPT"


def run_of(
    run_id: str, kind: str = "RUNNING", deployment: str | None = None, since: str = "2026-01-01T00:00:00Z"
) -> Any:
    return {"id": run_id, "deployment_id": deployment, "state": {"type": kind, "timestamp": since}}


def adopter_with(api: Any, home: Path) -> Adopter:
    return Adopter(places=Places(lake=home / "lake", home=home), api=api)


# --- with a fake server -------------------------------------------------------------------------------------------


def test_a_run_must_seem_dead_twice(tmp_path: Path) -> None:
    api = FakeApi(run_of("r1", deployment="d"))
    adopter = adopter_with(api, tmp_path)
    adopter.look()
    assert api.states == []
    adopter.look()
    assert api.states == [("r1", "Crashed")]


def test_a_run_of_this_living_process_is_left_alone(tmp_path: Path) -> None:
    trace.leave(tmp_path, "r1")
    api = FakeApi(run_of("r1"))
    adopter = adopter_with(api, tmp_path)
    for _ in range(3):
        adopter.look()
    assert api.states == []


def test_whose_process_cannot_be_known_is_left_alone(tmp_path: Path) -> None:
    """A run without a deployment and without a trace: somebody's own flow, perhaps on another machine."""
    api = FakeApi(run_of("r1"))
    adopter = adopter_with(api, tmp_path)
    for _ in range(3):
        adopter.look()
    assert api.states == []


def test_a_run_that_just_changed_gets_time(tmp_path: Path) -> None:
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    api = FakeApi(run_of("r1", deployment="d", since=soon))
    adopter = adopter_with(api, tmp_path)
    for _ in range(3):
        adopter.look()
    assert api.states == []


@pytest.mark.parametrize(("since_trace_s", "states"), [(-5, [("r1", "Crashed")]), (5, [])])
def test_the_trace_of_an_earlier_execution_says_nothing(
    tmp_path: Path, since_trace_s: float, states: list[tuple[str, str]]
) -> None:
    """A run that changed its state after its dead executor signed in is being started again just now."""
    child = subprocess.Popen([sys.executable, "-c", LEAVES, str(tmp_path)], cwd=ROOT)
    assert child.wait() == 0
    changed = trace.left_at(tmp_path, "r1") + since_trace_s
    api = FakeApi(run_of("r1", deployment="d", since=datetime.fromtimestamp(changed, UTC).isoformat()))
    adopter = adopter_with(api, tmp_path)
    for _ in range(2):
        adopter.look()
    assert api.states == states


def test_cancelling_without_a_process_is_cancelled(tmp_path: Path) -> None:
    api = FakeApi(run_of("r1", kind="CANCELLING", deployment="d"))
    adopter = adopter_with(api, tmp_path)
    adopter.look()
    adopter.look()
    assert api.states == [("r1", "Cancelled")]


def test_entrypoints_are_those_of_the_deployments() -> None:
    import yaml

    declared = yaml.safe_load((ROOT / "deployments" / "prefect.yaml").read_text())["deployments"]
    assert {module_path(row["entrypoint"]) for row in declared} == set(ENTRYPOINTS.values())


# --- on a real server ---------------------------------------------------------------------------------------------


@pytest.fixture
def toys(services: Places, api: PrefectApi) -> Iterator[Adopter]:
    """An adopter for the toy flows; its children end with the test."""
    adopter = Adopter(places=services, api=api, entrypoints=TOYS, settled_after_s=0.0)
    yield adopter
    for child in adopter.adopted.values():
        child.kill()
        child.wait()


def only_run(api: PrefectApi, flow: str) -> dict[str, Any]:
    (run,) = api.flow_runs({}, flows=[flow])
    return run


def press_retry(api: PrefectApi, run_id: str) -> None:
    """What the button of the UI sends, for runs without a deployment too."""
    state = {"type": "SCHEDULED", "name": "AwaitingRetry"}
    answer = api.call("POST", f"/flow_runs/{run_id}/set_state", {"state": state, "force": True})
    assert answer["status"] == "ACCEPT"


def test_retry_of_a_notebook_run_is_the_same_run(
    services: Places, api: PrefectApi, toys: Adopter, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="not mended"):
        toy(str(tmp_path), home=str(services.home))
    run = only_run(api, "toy")
    assert (run["state"]["type"], run["deployment_id"]) == ("FAILED", None)
    (tmp_path / "mended").touch()
    press_retry(api, run["id"])
    toys.look()
    done = eventually(lambda: found if (found := api.flow_run(run["id"]))["state"]["type"] == "COMPLETED" else None)
    assert done["run_count"] == 2
    assert (tmp_path / "tries").read_text() == "here\nhere\n"
    assert only_run(api, "toy")["id"] == run["id"]


def test_a_killed_run_is_crashed_and_can_be_retried(
    services: Places, api: PrefectApi, toys: Adopter, tmp_path: Path
) -> None:
    """As a terminal's run: the flow in a process of its own, killed while it works."""
    program = f"from tests.flows.toy_flows import toy_wait; toy_wait({str(tmp_path)!r}, home={str(services.home)!r})"
    terminal = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    eventually((tmp_path / "tries").exists)
    run = only_run(api, "toy-wait")
    for _ in range(3):
        toys.look()
    assert api.flow_run(run["id"])["state"]["type"] == "RUNNING"
    os.kill(terminal.pid, signal.SIGKILL)
    terminal.wait()
    eventually(lambda: toys.look() or api.flow_run(run["id"])["state"]["name"] == "Crashed", within_s=15)
    press_retry(api, run["id"])
    toys.look()
    eventually(lambda: len((tmp_path / "tries").read_text().splitlines()) == 2)
    assert [each.run_id for each in engines() if each.home == str(services.home)] == [run["id"]]
    (tmp_path / "mended").touch()
    done = eventually(lambda: found if (found := api.flow_run(run["id"]))["state"]["type"] == "COMPLETED" else None)
    assert done["run_count"] == 2


def test_the_service_itself_is_running(services: Places) -> None:
    looked = (services.home / "adopter.json").stat().st_mtime
    assert eventually(lambda: (services.home / "adopter.json").stat().st_mtime > looked, within_s=15)
    assert module.LOOK_EVERY_S < 5
