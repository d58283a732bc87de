"""Retry as people use it: the button and its REST call, after failures, kills and a lost database."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flows.api import PrefectApi
from flows.services import ledger
from tasks.build import FAIL_ONCE
from tasks.events import read_events
from tasks.launchers.local import LAUNCHER, members
from tests.conftest import ROOT, chromium
from tests.data_lake.recordings import write_v2
from tests.flows.inbox_recipe import NAME as CART
from tests.waiting import eventually

EARLIER = ("collect", "ingest", "preprocess", "pack")
LATER = ("train", "export", "evaluate", "register")
QUICK = {"num_steps": 6, "checkpoint_every": 2}


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """A home where `up` runs, over a lake in which smoke is built; every train stage fails once per run."""

    lake: Path
    home: Path
    environment: dict[str, str]

    @property
    def api(self) -> PrefectApi:
        url = ledger.server_url(self.home)
        assert url is not None, "the server is down"
        return PrefectApi(url=url)

    def cli(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        places = ("--lake", str(self.lake), "--home", str(self.home))
        command = [sys.executable, "-m", "flows.cli", *arguments, *places]
        return subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=400)

    def start(self, recipe: str = "smoke", others: dict[str, Any] | None = None, **train: Any) -> str:
        """A flow run of the smoke deployment with changed training fields (and `others`)."""
        places = {"lake": str(self.lake), "home": str(self.home)}
        parameters = {"recipe": recipe, "changes": {"train": {**QUICK, **train}, **(others or {})}, **places}
        return self.api.start_deployment("train-loop/smoke", parameters)["id"]

    def press_retry(self, run_id: str) -> None:
        """What the button sends."""
        state = {"type": "SCHEDULED", "name": "AwaitingRetry"}
        answer = self.api.call("POST", f"/flow_runs/{run_id}/set_state", {"state": state, "force": True})
        assert answer["status"] == "ACCEPT"

    def wait(self, run_id: str, *kinds: str, run_count: int = 1) -> dict[str, Any]:
        """The flow run, once its state is one of `kinds` in its `run_count`-th execution."""

        def there() -> dict[str, Any] | None:
            run = self.api.flow_run(run_id)
            return run if run["state"]["type"] in kinds and run["run_count"] >= run_count else None

        return eventually(there, 240)

    def events(self, run_id: str, event: str) -> list[str]:
        return [each["stage"] for each in read_events(self.home, run_id) if each["event"] == event]


@pytest.fixture(scope="module")
def served(smoke_lake: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    lake, home = folder / "lake", folder / ".vlaloop"
    shutil.copytree(smoke_lake[0], lake)
    shutil.copytree(smoke_lake[1], home)
    here = Served(lake=lake, home=home, environment={**os.environ, FAIL_ONCE: "train"})
    try:
        begun = here.cli("up", "--json")
        assert begun.returncode == 0, begun.stdout + begun.stderr
        yield here
    finally:
        ended = here.cli("down", "--json")
        assert ended.returncode == 0, ended.stdout + ended.stderr


def assert_retried(served: Served, run_id: str) -> None:
    """The failed stage and what follows were built once, the earlier ones never."""
    assert sorted(served.events(run_id, "built")) == sorted(LATER)
    assert served.events(run_id, "failed") == ["train"]
    assert served.events(run_id, "cached") == [*EARLIER, *EARLIER]


def task_states(served: Served, run_id: str) -> dict[str, set[str]]:
    """Names of the states of each stage's task runs."""
    body = {"flow_runs": {"id": {"any_": [run_id]}}, "limit": 200}
    found: dict[str, set[str]] = {}
    for task in served.api.call("POST", "/task_runs/filter", body):
        found.setdefault(task["name"].partition("/")[0], set()).add(task["state"]["name"])
    return found


def test_retry_over_rest(served: Served) -> None:
    run_id = served.start(seed=101)
    served.wait(run_id, "FAILED")
    served.press_retry(run_id)
    served.wait(run_id, "COMPLETED", run_count=2)
    assert_retried(served, run_id)
    states = eventually(lambda: found if "register" in (found := task_states(served, run_id)) else None, 240)
    assert all(states[stage] == {"Cached"} for stage in EARLIER)
    assert states["train"] == {"Failed", "Completed"}


@pytest.mark.browser
def test_the_button_on_a_run_that_the_terminal_started(served: Served) -> None:
    from playwright.sync_api import sync_playwright

    failed = served.cli("run", "smoke", "--json", "--set", "train.seed=102", *flags(QUICK))
    assert failed.returncode == 1, failed.stdout + failed.stderr
    answer = json.loads(failed.stdout.splitlines()[-1])
    assert "told to fail once" in answer["error"]["message"]
    (run,) = served.api.flow_runs({"state": {"type": {"any_": ["FAILED"]}}}, flows=["train-loop"])
    page_url = f"{served.api.url.removesuffix('/api')}/runs/flow-run/{run['id']}"
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
        browser = playwright.chromium.launch(executable_path=chromium(), args=options)
        page = browser.new_page()
        page.goto(page_url)
        page.get_by_role("button", name="Retry").first.click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Retry").click()
        served.wait(run["id"], "SCHEDULED", "PENDING", "RUNNING", "COMPLETED")
        browser.close()
    served.wait(run["id"], "COMPLETED", run_count=2)
    assert_retried(served, run["id"])


def flags(fields: dict[str, Any]) -> list[str]:
    return [part for name, value in fields.items() for part in ("--set", f"train.{name}={value}")]


@pytest.mark.slow
def test_an_episode_that_comes_between_failure_and_retry_waits_for_the_next_run(served: Served, tmp_path: Path) -> None:
    def start() -> tuple[str, str]:
        """A run up to its failure in train, and what its ingest took in."""
        run_id = served.start(CART, {"ingest": {"source": str(source)}}, seed=104)
        served.wait(run_id, "FAILED")
        (built,) = (e for e in read_events(served.home, run_id) if (e["stage"], e["event"]) == ("ingest", "built"))
        return run_id, built["line"]

    source = write_v2(tmp_path / "source", (12, 10, 12))
    run_id, line = start()
    assert line.startswith("3 ok")
    shutil.rmtree(source)
    write_v2(source, (12, 10, 12, 11))
    served.press_retry(run_id)
    served.wait(run_id, "COMPLETED", run_count=2)
    assert served.events(run_id, "built") == ["ingest", "preprocess", "pack", *LATER]
    assert start()[1].startswith("4 ok")


def test_the_worker_is_killed_in_training_and_retry_attaches_to_the_job(served: Served) -> None:
    run_id = served.start(seed=103, num_steps=60)
    served.wait(run_id, "FAILED")
    served.press_retry(run_id)
    eventually(lambda: len([each for each in read_events(served.home, run_id) if each["event"] == "progress"]) > 1, 240)
    for pid in executors(served, run_id):
        os.kill(pid, signal.SIGKILL)
    served.wait(run_id, "CRASHED")
    served.press_retry(run_id)
    served.wait(run_id, "COMPLETED", run_count=3)
    built = [each for each in read_events(served.home, run_id) if each["event"] == "built"]
    (slot,) = {each["slot"] for each in built if each["stage"] == "train"}
    jobs = list((served.lake / "train" / slot).glob("attempts/*/job"))
    assert len(jobs) == 1
    steps = [json.loads(line)["step"] for line in (jobs[0].parent / "metrics.jsonl").read_text().splitlines()]
    assert steps == list(range(60))


def test_a_cancel_ends_the_training_job_too(served: Served) -> None:
    run_id = served.start(seed=105, num_steps=5000)
    served.wait(run_id, "FAILED")
    served.press_retry(run_id)
    eventually(lambda: len([each for each in read_events(served.home, run_id) if each["event"] == "progress"]) > 1, 240)
    (slot,) = {each["slot"] for each in read_events(served.home, run_id) if each["event"] == "progress"}
    job = json.loads((served.lake / "train" / slot / "job.json").read_text())
    assert members(job["handle"])
    try:
        served.api.set_state(run_id, "CANCELLING", "Cancelling", "by the button")
        served.wait(run_id, "CANCELLED")
        eventually(lambda: not members(job["handle"]), within_s=30)
    finally:
        LAUNCHER.cancel(job["handle"])


def executors(served: Served, run_id: str) -> list[int]:
    """The process that executes the run, and the worker that started it."""
    executor = json.loads((served.home / "runs" / run_id / "executor.json").read_text())["pid"]
    worker = ledger.read(served.home).get("worker")
    assert worker is not None
    return [worker.started.pid, executor]


@pytest.mark.slow
def test_a_new_run_after_the_database_is_lost_builds_nothing(served: Served) -> None:
    assert served.cli("down", "--json").returncode == 0
    shutil.rmtree(served.home / "prefect")
    again = served.cli("run", "smoke", "--json", "--set", "train.seed=101", *flags(QUICK))
    assert again.returncode == 0, again.stdout + again.stderr
    stages = json.loads(again.stdout.splitlines()[-1])["stages"]
    assert {stage["state"] for stage in stages} == {"cached"}
    assert served.cli("up", "--json").returncode == 0
