"""Leases: who builds a slot. The holder is whoever created the highest numbered lease file.

Taking over is creating the next number, which only one can do; so a builder that wakes after it was taken
over finds a higher number and stops. Nothing compares wall clocks: a watcher judges by its own stopwatch
whether the holder's beat still changes.
"""

import json
import os
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from data_lake.files import LakePath, put_if_absent, read_json
from data_lake.files import replace as replace_file
from data_lake.objects import answering
from data_lake.sealed import NOT_OF_ITS_FORM, numbered, of_kind
from errors import Transient, UserError


class TakenOver(Exception):
    """Another builder holds the slot now; this one must stop, and may have spoilt nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Holder:
    """One lease file. `beat` counts heartbeats; `started` is the kernel's start time of `pid`."""

    attempt: int
    token: str
    run_id: str
    host: str
    pid: int
    started: str
    beat: int = 0
    released: bool = False

    def is_gone(self) -> bool:
        """True only when it is certain: it let go, or its process on this very machine has ended."""
        if self.released:
            return True
        return self.host == this_host() and start_time(self.pid) != self.started


def this_host() -> str:
    """This machine since it booted: host name and kernel boot id, where there is one."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return f"{os.uname().nodename}/{boot.read_text().strip() if boot.exists() else ''}"


def start_time(pid: int) -> str:
    """Kernel start time of a live process (with `pid` it names one process for good); empty when it has ended.

    Without /proc a live process cannot be told from its successor: then any live one counts as the same.
    """
    stat = Path(f"/proc/{pid}/stat")
    if not Path("/proc/self/stat").exists():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return ""
        return "alive"
    try:
        fields = stat.read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def newest(folder: LakePath) -> Holder | None:
    """The present holder of the slot whose lease files lie in `folder`. One whose file is torn or odd has let go:
    if it lives, it learns so before it commits."""
    files = numbered(folder, digits=4) if folder.exists() else {}
    if not files:
        return None
    number = max(files)
    nobody = Holder(attempt=number, token="", run_id="", host="", pid=0, started="", released=True)
    try:
        found = of_kind(Holder, read_json(files[number], remedy=""))
    except (UserError, *NOT_OF_ITS_FORM):
        return nobody
    return found if found.attempt == number else nobody


class Lease:
    """A held lease: beats in the background until released or lost."""

    def __init__(self, folder: LakePath, holder: Holder, lease_s: float) -> None:
        self._folder = folder
        self._holder = holder
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._beat, args=(lease_s / 5,), daemon=True)
        self._thread.start()

    @property
    def attempt(self) -> int:
        return self._holder.attempt

    def check(self) -> None:
        """Raise TakenOver when a higher numbered lease exists."""
        found = newest(self._folder)
        if found is None or found.token != self._holder.token:
            raise TakenOver(f"attempt {self.attempt} was taken over")

    def release(self) -> None:
        """Let go, so that the next builder need not wait."""
        self._ended.set()
        with self._lock:
            self._write(replace(self._holder, released=True))

    def _beat(self, every_s: float) -> None:
        while not self._ended.wait(every_s):
            with self._lock:
                if not self._ended.is_set():
                    # What missing beats cost, `check` says; the next one may get through.
                    with suppress(OSError, Transient), answering(self._folder):
                        self._write(replace(self._holder, beat=self._holder.beat + 1))

    def _write(self, holder: Holder) -> None:
        self._holder = holder
        if self._folder.exists():  # gc may have removed a slot that was taken over long ago
            replace_file(lease_path(self._folder, holder.attempt), json.dumps(asdict(holder)).encode())


def lease_path(folder: LakePath, attempt: int) -> LakePath:
    return folder / f"{attempt:04d}.json"


def acquire(
    folder: LakePath,
    *,
    run_id: str,
    lease_s: float,
    is_finished: Callable[[], bool],
    on_wait: Callable[[Holder], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Lease | None:
    """Wait for the slot and take it; None when somebody finished it meanwhile.

    `on_wait` is told once whom this waits for. A holder whose beat stands still for `lease_s` seconds of
    watching is taken over; time in which the watcher itself slept does not count.
    """
    poll_s = min(1.0, lease_s / 10)
    seen: tuple[int, int] | None = None
    silent_s = 0.0
    while not is_finished():
        held = newest(folder)
        if held is None or held.is_gone() or silent_s >= lease_s:
            attempt = held.attempt + 1 if held else 1
            mine = Holder(
                attempt=attempt,
                token=uuid.uuid4().hex,
                run_id=run_id,
                host=this_host(),
                pid=os.getpid(),
                started=start_time(os.getpid()),
            )
            if put_if_absent(lease_path(folder, attempt), json.dumps(asdict(mine)).encode()):
                return Lease(folder, mine, lease_s)
            seen, silent_s = None, 0.0
            continue
        if seen is None:
            on_wait(held)
        silent_s = silent_s + poll_s if seen == (held.attempt, held.beat) else 0.0
        seen = (held.attempt, held.beat)
        sleep(poll_s)
    return None
