"""Jobs as subprocesses of this machine, in sessions of their own: they survive the death of their parent."""

import contextlib
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from errors import Transient
from tasks.launchers import Handle, Job, JobStatus
from tasks.launchers.supervise import GRACE_S, start_time, state_letter, write_json

MARK = "VLALOOP_JOB"  # environment variable that every process of a job inherits
START_S = 30.0  # a supervisor that has not signed in after this long never will
SPIN = "50000"  # a thread waits awake for a fraction of a millisecond; sleeping at once costs a third of the speed
TAIL_BYTES = 4000


def worker_command(job: Job) -> list[str]:
    """One process of the job's module."""
    return [sys.executable, "-m", job.module, *job.arguments]


@dataclass(frozen=True, slots=True)
class LocalLauncher:
    """`command` turns a job into the command that its supervisor runs."""

    name: str
    command: Callable[[Job], list[str]]

    def plan(self, job: Job) -> Handle:
        return {
            "launcher": self.name,
            "job_id": job.job_id,
            "directory": str(job.directory),
            "node": platform.node(),
            "boot": _boot(),
            "submitted": time.time(),
        }

    def submit(self, job: Job) -> Handle:
        """Returns when the supervisor has signed in. Raises `Transient` when it does not."""
        job.directory.mkdir(parents=True, exist_ok=True)
        write_json(job.directory / "command.json", {"job_id": job.job_id, "command": self.command(job)})
        threads = str(job.threads)
        settings = {MARK: job.job_id, "OMP_NUM_THREADS": threads, "GOMP_SPINCOUNT": SPIN, "PYTHONUNBUFFERED": "1"}
        root = Path(__file__).resolve().parents[2]
        with (job.directory / "log.txt").open("ab") as log:
            started = subprocess.run(
                [sys.executable, "-m", "tasks.launchers.supervise", str(job.directory)],
                cwd=root,
                env=os.environ | settings,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                check=False,
            )
        handle = self.plan(job)
        deadline = time.monotonic() + START_S
        while not _signed_in(handle):
            if started.returncode != 0 or time.monotonic() > deadline:
                raise Transient(f"job {job.job_id} did not start; its log is {job.directory / 'log.txt'}")
            time.sleep(0.02)
        return handle

    def attach(self, handle: Handle) -> JobStatus:
        """A job of another machine counts as running: whoever follows it judges by its beat."""
        directory = Path(handle["directory"])
        here = handle["node"] == platform.node()
        # looked at before exit.json: a job that ends in between has written that then
        alive = not here or (handle["boot"] == _boot() and _alive(handle))
        ended = _read(directory / "exit.json")
        code = ended["exit_code"] if ended.get("job_id") == handle["job_id"] else None
        starting = not _signed_in(handle) and 0 <= time.time() - handle["submitted"] < START_S
        if code is not None:
            state = "succeeded" if code == 0 else "failed"
        else:
            state = "running" if alive or starting else "lost"
        beat = _text(directory / "beat")
        spent = ended["cpu_seconds"] if code is not None else 0.0
        tail = _tail(directory / "log.txt")
        return JobStatus(state=state, exit_code=code, beat=beat, log_tail=tail, cpu_seconds=spent)

    def cancel(self, handle: Handle) -> None:
        """SIGTERM, and after a grace SIGKILL, to the processes of this job, each by its id."""
        deadline = time.monotonic() + GRACE_S
        number = signal.SIGTERM
        while pids := members(handle):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                    os.kill(pid, signal.SIGCONT)  # a stopped process takes no SIGTERM
            time.sleep(0.05)
            if time.monotonic() > deadline:
                number = signal.SIGKILL


def members(handle: Handle) -> list[int]:
    """Pids of the living processes of a job: they carry its mark in their environment, whoever their parent is."""
    mark = f"{MARK}={handle['job_id']}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # gone meanwhile, or another user's
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def _alive(handle: Handle) -> bool:
    signed = _signed_in(handle)
    if signed and start_time(signed["pid"]) == signed["started"] and state_letter(signed["pid"]) not in ("Z", ""):
        return True
    return bool(members(handle))  # the supervisor alone may have been killed


def _signed_in(handle: Handle) -> dict[str, Any]:
    """The supervisor's own note, {} until it has written it."""
    note = _read(Path(handle["directory"]) / "supervisor.json")
    return note if note.get("job_id") == handle["job_id"] else {}


def _boot() -> str:
    """Changes with every start of the machine; pids of an earlier one say nothing."""
    return _text(Path("/proc/sys/kernel/random/boot_id")).strip()


def _read(path: Path) -> dict[str, Any]:
    text = _text(path)
    return json.loads(text) if text else {}


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, path.stat().st_size - TAIL_BYTES))
            return stream.read().decode(errors="replace")
    except FileNotFoundError:
        return ""


LAUNCHER = LocalLauncher("local", worker_command)
