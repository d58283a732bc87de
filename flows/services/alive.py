"""Whether a recorded process is still the same one: a pid alone may have been given to somebody else.

Standard library only.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from data_lake.lease import start_time

PROC = Path("/proc")
OWNER = "VLALOOP_SERVER_OF"  # environment variable: pid and start time of the run that a server serves


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """pid and when the kernel started it: together they name one process for good. Empty: it had ended already."""

    pid: int
    since: str

    @classmethod
    def now(cls, pid: int) -> "Started":
        return cls(pid=pid, since=start_time(pid))

    def is_alive(self) -> bool:
        return bool(self.since) and start_time(self.pid) == self.since


def terminate(started: Started, *, grace_s: float) -> bool:
    """SIGTERM to the whole group that `started` leads, SIGKILL after `grace_s`. False when it had gone already."""
    if not started.is_alive():
        return False
    _signal_group(started, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while started.is_alive() and time.monotonic() < deadline:
        _reap(started.pid)
        time.sleep(0.05)
    if started.is_alive() or _group_lives(started.pid):
        _signal_group(started, signal.SIGKILL)
    _reap(started.pid)
    return True


def left_behind(leader: Started, home: Path) -> list[Started]:
    """Processes of the group that `leader` led and has left by dying, as far as they were started for `home`."""
    if leader.is_alive():
        return []
    return [found for found in _of_home("VLALOOP_HOME", home) if _group(found.pid) == leader.pid]


@contextmanager
def marked_as_mine() -> Iterator[None]:
    """Processes started meanwhile carry in their environment who started them."""
    mine = Started.now(os.getpid())
    os.environ[OWNER] = f"{mine.pid} {mine.since}"
    try:
        yield
    finally:
        del os.environ[OWNER]


def end_stray_servers(prefect_home: Path) -> None:
    """End the servers of runs that were killed before they could do it themselves."""
    for found in _of_home("PREFECT_HOME", prefect_home):
        marks = [each.decode() for each in _variables(found.pid) if each.startswith(f"{OWNER}=".encode())]
        pid, _, since = marks[0].partition("=")[2].partition(" ") if marks else ("", "", "")
        if marks and not Started(pid=int(pid), since=since).is_alive():
            terminate(found, grace_s=5.0)


def _of_home(variable: str, home: Path) -> list[Started]:
    """Living processes of this user whose environment says so."""
    wanted = f"{variable}={home}".encode()
    pids = [int(entry.name) for entry in PROC.glob("[0-9]*")] if PROC.is_dir() else []
    found = [Started.now(pid) for pid in pids if wanted in _variables(pid)]
    return [each for each in found if each.is_alive()]


def _variables(pid: int) -> list[bytes]:
    """A process's environment; empty when it has ended or belongs to somebody else."""
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """A process in which Prefect runs one flow run; `home` is the vlaloop home it was started for."""

    pid: int
    run_id: str
    home: str


def engines() -> list[Engine]:
    """The Prefect engines of this user on this machine.

    Told by the command and by the run's id in the environment. Jobs that a run has launched inherit the
    environment, not the command.
    """
    entries = PROC.glob("[0-9]*") if PROC.is_dir() else ()
    return [engine for entry in entries if (engine := _engine(entry)) is not None]


def _engine(entry: Path) -> Engine | None:
    try:
        command = (entry / "cmdline").read_bytes().split(b"\0")
        if not {b"prefect.engine", b"prefect.flow_engine"} & set(command):
            return None
    except OSError:  # it ended meanwhile
        return None
    variables = [each.decode(errors="replace") for each in _variables(int(entry.name))]
    found = {name: value for name, _, value in (variable.partition("=") for variable in variables)}
    run_id = found.get("PREFECT__FLOW_RUN_ID")
    if run_id is None or not start_time(int(entry.name)):
        return None
    return Engine(pid=int(entry.name), run_id=run_id, home=found.get("VLALOOP_HOME", ""))


def _signal_group(started: Started, number: signal.Signals) -> None:
    """To the group when `started` leads one (every service does), else to it alone."""
    try:
        if os.getpgid(started.pid) == started.pid:
            os.killpg(started.pid, number)
        else:
            os.kill(started.pid, number)
    except ProcessLookupError:
        # The leader is gone; its group may still have members, and keeps the leader's number until they end.
        if _group_lives(started.pid):
            os.killpg(started.pid, number)


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _reap(pid: int) -> None:
    """Collect a child of ours that ended, so that it does not stay as a zombie."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
