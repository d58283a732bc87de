"""The train stage with its real job: loader, policy, launcher, on a small fabricated data set."""

import json
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from data_lake.refs import CheckpointRef
from errors import Transient, UserError
from model_core.training.checkpoint import find_fault
from tasks.launchers import Job, local
from tasks.metrics import last_step
from tasks.registry import connect
from tasks.runtime import Note, Progress, Summary
from tasks.spool import last_line, read_lines
from tasks.train import Submitted, follow, running_jobs, train
from tests.data_lake.test_cluster import QUIET
from tests.tasks import small_lake
from tests.tasks.small_lake import STAGE, SmallLake
from tests.tasks.test_launchers import LAUNCHER as SHELL
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
LONG = replace(STAGE, train=replace(STAGE.train, num_steps=160))
FOLLOWER = """
import sys
from pathlib import Path
from tasks.train import train
from tests.tasks import small_lake, test_train
small_lake.opened(Path(sys.argv[1])).train(train, test_train.LONG)
"""


@pytest.fixture(scope="module", autouse=True)
def tracking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One MLflow database for all lakes here: making one takes seconds."""
    home = tmp_path_factory.mktemp("tracking")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{home}/mlflow.db")
        yield home


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return small_lake.make(tmp_path)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[SmallLake, CheckpointRef]:
    lake = small_lake.make(tmp_path_factory.mktemp("undisturbed"))
    return lake, lake.train(train)


def history(lake: SmallLake, ref: CheckpointRef) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (lake.runtime.path(ref.uri) / "history.jsonl").read_text().splitlines()]


def notes(lake: SmallLake) -> str:
    return "\n".join(report.text for report in lake.reports if isinstance(report, Note))


def slot(lake: SmallLake, spec: Any = STAGE) -> Path:
    (path,) = (lake.runtime.lake / "train").iterdir()
    return path


def job_and_step(lake: SmallLake, step: int, number: int = 1) -> Submitted:
    """The slot's job, once its training has done `step`."""
    root = lake.runtime.lake / "train"
    eventually(lambda: any(root.glob(f"*/attempts/{number}/metrics.jsonl")))
    metrics = slot(lake) / "attempts" / str(number) / "metrics.jsonl"
    eventually(lambda: (line := last_line(metrics)) is not None and line["step"] >= step)
    job = Submitted.read(slot(lake))
    assert job is not None
    return job


def worker_of(job: Submitted) -> int:
    """Pid of the job's training process."""
    return next(
        pid for pid in local.members(job.handle) if b"train_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )


def in_background(lake: SmallLake, spec: Any = STAGE) -> tuple[threading.Thread, list[BaseException | CheckpointRef]]:
    ended: list[BaseException | CheckpointRef] = []

    def body() -> None:
        try:
            ended.append(lake.train(train, spec))
        except (Transient, UserError) as error:
            ended.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    return thread, ended


def test_it_trains_to_the_last_step_and_says_how(undisturbed: tuple[SmallLake, CheckpointRef], tracking: Path) -> None:
    lake, ref = undisturbed
    assert (ref.step, ref.uri) == (40, f"train/{ref.fingerprint}/attempts/1/checkpoints/step-000040")
    assert find_fault(lake.runtime.path(ref.uri)) is None
    lines = read_lines(lake.runtime.path(ref.uri).parents[1] / "metrics.jsonl")
    assert [line["step"] for line in lines] == list(range(40))
    assert all(line["samples_per_s"] > 0 and 0 <= line["input_wait"] <= 1 for line in lines)
    assert [line["loss"] for line in lines] == [line["loss"] for line in history(lake, ref)]
    assert ref.samples_seen == sum(line["num_samples"] for line in lines)
    progress = [report for report in lake.reports if isinstance(report, Progress)]
    assert progress[-1].done == progress[-1].total == 40
    assert set(progress[-1].figures) == {"loss", "samples/s", "input wait"}
    assert [report.cpu_seconds > 0.5 for report in lake.reports if isinstance(report, Summary)] == [True]
    assert notes(lake) == ""
    registry = connect(lake.runtime.lake, tracking)
    assert last_step(registry, registry.run_of(f"train/{ref.fingerprint}", "")) == 39


def test_a_finished_job_is_not_repeated(undisturbed: tuple[SmallLake, CheckpointRef]) -> None:
    lake, ref = undisturbed
    assert lake.train(train) == ref
    assert not (slot(lake) / "attempts" / "2" / "job").exists()


def test_a_run_that_fails_and_then_is_killed_ends_with_the_same_losses(
    lake: SmallLake, undisturbed: tuple[SmallLake, CheckpointRef], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLALOOP_FAIL_AT_STEP", "9")
    with pytest.raises(UserError, match=r"TRAIN-001.*told to fail once at step 9") as caught:
        lake.train(train)
    assert "log.txt" in caught.value.next_step
    thread, ended = in_background(lake)
    job = job_and_step(lake, 18, number=2)
    os.kill(worker_of(job), signal.SIGKILL)
    thread.join()
    assert isinstance(ended[0], Transient)
    newest = max((slot(lake) / "attempts/2/checkpoints").glob("step-*"))
    (newest / "model.safetensors").write_bytes(b"torn")
    ref = lake.train(train)
    whole_lake, whole = undisturbed
    assert history(lake, ref) == history(whole_lake, whole)
    assert ref.loss == whole.loss
    for path in whole_lake.runtime.path(whole.uri).iterdir():
        assert path.read_bytes() == (lake.runtime.path(ref.uri) / path.name).read_bytes(), path.name
    assert "from the beginning" in (slot(lake) / "attempts/1/job/log.txt").read_text()
    assert "step-000008" in (slot(lake) / "attempts/2/job/log.txt").read_text()
    assert f"{newest} passed over: model.safetensors" in (slot(lake) / "attempts/3/job/log.txt").read_text()
    lines = read_lines(slot(lake) / "attempts/3/metrics.jsonl")
    assert [line["step"] for line in lines] == list(range(40))
    assert all(line["samples_per_s"] for line in lines)


def test_who_comes_after_a_dead_follower_attaches_to_the_job_that_still_runs(lake: SmallLake) -> None:
    follower = subprocess.Popen([sys.executable, "-c", FOLLOWER, lake.runtime.lake.parent], cwd=ROOT)
    job = job_and_step(lake, 3)
    assert running_jobs(lake.runtime.lake) == {f"train/{slot(lake).name}": job.handle["job_id"]}
    follower.kill()
    follower.wait()
    ref = lake.train(train, LONG)
    assert running_jobs(lake.runtime.lake) == {}
    after = Submitted.read(slot(lake))
    assert after is not None
    assert after.handle["job_id"] == job.handle["job_id"]
    assert "attached to job" in notes(lake)
    assert "/attempts/1/checkpoints/step-000160" in ref.uri
    assert [line["step"] for line in read_lines(slot(lake) / "attempts/1/metrics.jsonl")] == list(range(160))
    assert not (slot(lake) / "attempts/2/job").exists()


@dataclass(frozen=True)
class Unfenced:
    """An attempt that nobody takes over."""

    slot: Path

    def check(self) -> None:
        """Still ours."""


def test_a_silent_job_is_cancelled_and_worth_a_retry(lake: SmallLake, tmp_path: Path) -> None:
    job = Job(job_id=uuid.uuid4().hex, module="", arguments=("sleep 60",), directory=tmp_path / "job")
    handle = SHELL.submit(job) | {"launcher": "tests.tasks.test_launchers:LAUNCHER"}
    submitted = Submitted(handle=handle, output="attempts/1")
    out: Any = Unfenced(tmp_path)
    with pytest.raises(Transient, match="no sign of life for 1 s"):
        follow(submitted, 40, out=out, runtime=lake.runtime, poll_s=0.05, silence_s=0.6)
    assert local.members(handle) == []


@pytest.mark.slow
def test_two_ranks_under_torchrun_see_the_same_samples(
    lake: SmallLake, undisturbed: tuple[SmallLake, CheckpointRef]
) -> None:
    ref = lake.train(train, processes=2)
    whole_lake, whole = undisturbed
    for left, right in zip(history(lake, ref), history(whole_lake, whole), strict=True):
        assert left["sample_digest"] == right["sample_digest"]
        assert left["loss"] == pytest.approx(right["loss"], rel=1e-4)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Address of a cluster that outlives the job."""
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    command = [sys.executable, "-m", "tests.tasks.ray_cluster"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()


@pytest.mark.slow
def test_two_ranks_train_on_batches_of_a_cluster_as_on_their_own(
    cluster: str, lake: SmallLake, undisturbed: tuple[SmallLake, CheckpointRef]
) -> None:
    ref = lake.train(train, processes=2, decode="ray", ray_address=cluster)
    whole_lake, whole = undisturbed
    for left, right in zip(history(lake, ref), history(whole_lake, whole), strict=True):
        assert left["sample_digest"] == right["sample_digest"]
        assert left["loss"] == pytest.approx(right["loss"], rel=1e-4)
    log = (slot(lake) / "attempts/1/job/log.txt").read_text()
    assert log.count("Connected to Ray cluster") == 2


def test_a_cluster_that_is_not_named_is_asked_for_before_a_job_begins(lake: SmallLake) -> None:
    with pytest.raises(UserError, match="LOAD-002"):
        lake.train(train, decode="ray")
    assert not (slot(lake) / "job.json").exists()


@pytest.mark.slow
def test_micro_batches_see_the_same_samples(lake: SmallLake, undisturbed: tuple[SmallLake, CheckpointRef]) -> None:
    ref = lake.train(train, micro_batch_rows=1)
    whole_lake, whole = undisturbed
    for left, right in zip(history(lake, ref), history(whole_lake, whole), strict=True):
        assert left["sample_digest"] == right["sample_digest"]
        assert left["loss"] == pytest.approx(right["loss"], rel=1e-4)
