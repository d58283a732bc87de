"""Launchers: a job outlives its parent, tells a stranger how it ended, and goes when it is cancelled."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from lookup import lookup
from tasks.launchers import LAUNCHERS, Handle, Job, JobStatus
from tasks.launchers.local import MARK, LocalLauncher, members
from tasks.launchers.supervise import start_time, state_letter


def shell(job: Job) -> list[str]:
    return ["sh", "-c", *job.arguments]


LAUNCHER = LocalLauncher("shell", shell)


def job_of(tmp_path: Path, script: str) -> Job:
    return Job(job_id=uuid.uuid4().hex, module="", arguments=(script,), directory=tmp_path / "job")


def wait(handle: Handle, state: str = "", seconds: float = 10.0) -> JobStatus:
    deadline = time.monotonic() + seconds
    while (status := LAUNCHER.attach(handle)).state == "running" and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not state or status.state == state, status
    return status


@pytest.mark.parametrize("name", LAUNCHERS)
def test_every_launcher_plans_the_handle_that_it_returns(name: str, tmp_path: Path) -> None:
    launcher = lookup(LAUNCHERS, name, "launcher")
    handle = launcher.plan(job_of(tmp_path, "true"))
    assert handle["launcher"] == name
    assert launcher.attach(handle).state == "running", "a job just planned may be starting"
    assert launcher.attach(handle | {"submitted": time.time() - 60}).state == "lost"


@pytest.mark.parametrize(
    ("script", "state", "code"), [("exit 0", "succeeded", 0), ("exit 3", "failed", 3), ("kill -9 $$", "failed", -9)]
)
def test_a_stranger_learns_how_a_job_ended(script: str, state: str, code: int, tmp_path: Path) -> None:
    handle = LAUNCHER.submit(job_of(tmp_path, f"echo working; {script}"))
    status = wait(handle, state)
    assert status.exit_code == code
    assert "working" in status.log_tail
    assert status.cpu_seconds >= 0.0


def test_a_job_survives_kill_9_of_its_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"""
import json, sys, time
from pathlib import Path
from tests.tasks.test_launchers import LAUNCHER, job_of
print(json.dumps(LAUNCHER.submit(job_of(Path({str(tmp_path)!r}), "sleep 1; echo survived"))), flush=True)
time.sleep(60)
""",
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert parent.stdout is not None
    handle = json.loads(parent.stdout.readline())
    parent.kill()
    parent.wait()
    assert LAUNCHER.attach(handle).state == "running"
    assert "survived" in wait(handle, "succeeded").log_tail


def test_cancel_ends_the_whole_job_even_when_it_is_stopped_or_ignores_sigterm(tmp_path: Path) -> None:
    handle = LAUNCHER.submit(job_of(tmp_path, "sleep 60 & sleep 60"))
    while len(pids := members(handle)) < 4:  # supervisor, shell, two sleeps
        time.sleep(0.02)
    os.kill(pids[-1], signal.SIGSTOP)
    LAUNCHER.cancel(handle)
    assert members(handle) == []
    assert LAUNCHER.attach(handle).state in ("failed", "lost")
    LAUNCHER.cancel(handle)


def test_a_job_whose_supervisor_alone_was_killed_still_counts_as_running_until_it_ends(tmp_path: Path) -> None:
    handle = LAUNCHER.submit(job_of(tmp_path, "sleep 0.7"))
    supervisor = next(pid for pid in members(handle) if b"supervise" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(supervisor, signal.SIGKILL)
    assert LAUNCHER.attach(handle).state == "running"
    assert wait(handle).state == "lost"


def test_another_process_with_the_same_pid_is_not_the_job(tmp_path: Path) -> None:
    handle = LAUNCHER.submit(job_of(tmp_path, "exit 0"))
    wait(handle, "succeeded")
    while members(handle):  # the supervisor may not be quite gone
        time.sleep(0.01)
    directory = Path(handle["directory"])
    (directory / "exit.json").unlink()
    (directory / "supervisor.json").write_text(
        f'{{"job_id": "{handle["job_id"]}", "pid": {os.getpid()}, "started": "1"}}'
    )
    assert LAUNCHER.attach(handle).state == "lost"


def test_a_job_of_before_a_restart_of_the_machine_is_lost_and_one_elsewhere_is_judged_by_its_beat(
    tmp_path: Path,
) -> None:
    handle = LAUNCHER.submit(job_of(tmp_path, "sleep 5"))
    (Path(handle["directory"]) / "beat").write_text("7")
    assert LAUNCHER.attach(handle | {"boot": "earlier"}).state == "lost"
    elsewhere = LAUNCHER.attach(handle | {"node": "elsewhere", "boot": "x"})
    assert (elsewhere.state, elsewhere.beat) == ("running", "7")
    LAUNCHER.cancel(handle)


def test_start_time_and_state_of_this_process_and_of_none() -> None:
    assert start_time(os.getpid()).isdigit()
    assert state_letter(os.getpid()) == "R"
    assert start_time(2**22 + 1) == state_letter(2**22 + 1) == ""
    assert MARK not in os.environ
