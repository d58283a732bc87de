"""Leases: one builder at a time, the dead are taken over at once, the silent after a while, by stopwatch only."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from data_lake.files import replace as replace_file
from data_lake.lease import Holder, Lease, TakenOver, acquire, lease_path, newest, start_time, this_host
from errors import Transient

SILENT = {"run_id": "r", "is_finished": lambda: False, "on_wait": lambda held: None}


def held(attempt: int = 1, **changes: object) -> Holder:
    here = {"host": this_host(), "pid": os.getpid(), "started": start_time(os.getpid())}
    return Holder(**{"attempt": attempt, "token": "t", "run_id": "r", **here, **changes})


def put(folder: Path, holder: Holder) -> None:
    replace_file(lease_path(folder, holder.attempt), json.dumps(asdict(holder)).encode())


def take(folder: Path, lease_s: float = 5.0, **changes: object) -> Lease:
    lease = acquire(folder, lease_s=lease_s, **{**SILENT, **changes})
    assert lease is not None
    return lease


def test_first_come_first_served_and_release_hands_over(tmp_path: Path) -> None:
    first = take(tmp_path)
    first.release()
    assert take(tmp_path).attempt == first.attempt + 1
    with pytest.raises(TakenOver):
        first.check()


def test_a_dead_process_is_taken_over_at_once(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    put(tmp_path, held(pid=child.pid, started=start_time(child.pid)))
    child.kill()
    child.wait()
    started = time.monotonic()
    assert take(tmp_path, lease_s=60).attempt == 2
    assert time.monotonic() - started < 1


def test_a_reused_pid_is_not_the_holder(tmp_path: Path) -> None:
    assert held(started="1").is_gone()
    assert not held().is_gone()


def test_a_holder_elsewhere_is_taken_over_only_when_its_beat_stands_still(tmp_path: Path) -> None:
    put(tmp_path, held(host="elsewhere"))
    waited: list[Holder] = []
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 5:
            put(tmp_path, held(host="elsewhere", beat=1))

    lease = acquire(tmp_path, lease_s=2.0, run_id="r", is_finished=lambda: False, on_wait=waited.append, sleep=sleep)
    assert lease is not None and lease.attempt == 2
    assert len(waited) == 1 and waited[0].host == "elsewhere"
    assert sum(slept) >= 2.0 + 5 * 0.2  # the beat in between started the wait anew


def test_a_watcher_that_slept_through_the_night_does_not_count_the_night(tmp_path: Path) -> None:
    put(tmp_path, held(host="elsewhere"))
    beats = iter(range(1, 4))

    def long_pause(_seconds: float) -> None:  # however long it really was, the holder beat once meanwhile
        if (beat := next(beats, None)) is None:
            raise InterruptedError
        put(tmp_path, held(host="elsewhere", beat=beat))

    with pytest.raises(InterruptedError):
        acquire(tmp_path, lease_s=0.1, sleep=long_pause, **SILENT)
    assert newest(tmp_path) == held(host="elsewhere", beat=3)


def test_waiting_ends_when_somebody_finishes(tmp_path: Path) -> None:
    put(tmp_path, held())
    answers = iter((False, False, True))
    assert acquire(tmp_path, lease_s=5.0, run_id="r", is_finished=lambda: next(answers), on_wait=lambda h: None) is None


def test_many_contenders_one_holder(tmp_path: Path) -> None:
    won: list[int] = []

    def contend() -> None:
        lease = acquire(tmp_path, lease_s=30.0, run_id="r", is_finished=lambda: bool(won), on_wait=lambda h: None)
        if lease is not None:
            won.append(lease.attempt)

    threads = [threading.Thread(target=contend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [1]


def test_the_beat_goes_on_in_the_background_and_stops_with_the_lease(tmp_path: Path) -> None:
    lease = take(tmp_path, lease_s=0.1)
    deadline = time.monotonic() + 5
    while (found := newest(tmp_path)) is not None and found.beat < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    lease.release()
    last = newest(tmp_path)
    time.sleep(0.1)
    assert last is not None and last.beat >= 3 and last.released
    assert newest(tmp_path) == last


STOPPED = """
import sys
from pathlib import Path
from data_lake.lease import TakenOver, acquire
lease = acquire(Path(sys.argv[1]), lease_s=0.5, run_id="stopped", is_finished=lambda: False, on_wait=print)
print("held", flush=True)
sys.stdin.readline()
try:
    lease.check()
    print("still mine", flush=True)
except TakenOver:
    print("taken over", flush=True)
"""


def test_a_beat_that_fails_is_not_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk or a store that does not answer for a moment costs a beat, not the lease."""
    lease, told = take(tmp_path, lease_s=0.1), iter([OSError("no answer"), Transient("no answer")])

    def faulty(path: Path, payload: bytes) -> None:
        if error := next(told, None):
            raise error
        replace_file(path, payload)

    monkeypatch.setattr("data_lake.lease.replace_file", faulty)
    ends = time.monotonic() + 10
    while (found := newest(tmp_path)) is None or found.beat < 3:
        assert time.monotonic() < ends
        time.sleep(0.01)
    lease.release()


def test_sigstop_loses_the_lease_once_and_the_sleeper_learns_of_it(tmp_path: Path) -> None:
    sleeper = subprocess.Popen(
        [sys.executable, "-c", STOPPED, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert sleeper.stdin is not None and sleeper.stdout is not None
    assert sleeper.stdout.readline() == "held\n"
    sleeper.send_signal(signal.SIGSTOP)
    mine = take(tmp_path, lease_s=0.5)
    sleeper.send_signal(signal.SIGCONT)
    sleeper.stdin.write("\n")
    sleeper.stdin.flush()
    assert sleeper.stdout.readline() == "taken over\n"
    assert sleeper.wait(10) == 0
    mine.check()
    assert mine.attempt == 2


def test_clock_jumps_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: -1e12)
    lease = take(tmp_path, lease_s=0.2)
    monkeypatch.setattr(time, "time", lambda: 1e12)
    time.sleep(0.2)
    lease.check()
    assert replace(held(), released=True).is_gone()


@pytest.mark.parametrize("content", ["", "{", "[]", "3", "{}", '{"attempt": "1"}', '{"attempt": 9}'])
def test_an_odd_lease_has_let_go(tmp_path: Path, content: str) -> None:
    first = take(tmp_path)
    lease_path(tmp_path, 1).write_text(content)
    (tmp_path / "2copy.json").write_text(content)
    found = newest(tmp_path)
    assert found is not None and found.is_gone() and found.attempt == 1
    with pytest.raises(TakenOver):
        first.check()
    assert take(tmp_path).attempt == 2
