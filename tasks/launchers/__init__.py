"""Ways to start a job that outlives whoever started it. LAUNCHERS maps names to modules' launcher values.

A launcher is three functions: `submit(job) -> handle`, `attach(handle) -> JobStatus`, `cancel(handle)`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

LAUNCHERS = {
    "local": "tasks.launchers.local:LAUNCHER",
    "torchrun": "tasks.launchers.torchrun:LAUNCHER",
}

Handle = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """`python -m module *arguments`, once per rank. `directory` receives its log, beat and exit status.

    job_id: chosen by the caller, so that a job can be found again by someone who saw no handle.
    """

    job_id: str
    module: str
    arguments: tuple[str, ...]
    directory: Path
    processes: int = 1
    threads: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class JobStatus:
    """lost: neither running nor ended with a status. exit_code: negative for a signal, None while unknown.

    cpu_seconds: what it used, once it has ended.
    beat: changes every few seconds while the job is alive inside; `log_tail` its last lines.
    """

    state: Literal["running", "succeeded", "failed", "lost"]
    exit_code: int | None
    beat: str
    log_tail: str
    cpu_seconds: float = 0.0


class Launcher(Protocol):
    def plan(self, job: Job) -> Handle:
        """The handle that `submit` will return, before anything is started: store it first."""
        ...

    def submit(self, job: Job) -> Handle:
        """Start the job; returns a JSON-safe handle."""
        ...

    def attach(self, handle: Handle) -> JobStatus:
        """How the job is now. Never waits, never changes anything."""
        ...

    def cancel(self, handle: Handle) -> None:
        """End the job and all its ranks; returns when they are gone. A job that has ended is left alone."""
        ...
