"""Who executes a run: alive, dead, or not to be known."""

import json
import os
import threading
from pathlib import Path

from flows import trace


def test_alive_dead_unknown(tmp_path: Path) -> None:
    assert trace.is_dead(tmp_path, "r1") is None
    trace.leave(tmp_path, "r1")
    assert trace.is_dead(tmp_path, "r1") is False
    path = tmp_path / "runs" / "r1" / "executor.json"
    left = json.loads(path.read_text())
    path.write_text(json.dumps({**left, "since": "1"}))
    assert trace.is_dead(tmp_path, "r1") is True
    name, _, boot = left["host"].partition("/")
    path.write_text(json.dumps({**left, "host": f"{name}/{boot}-before"}))  # the machine has booted since
    assert trace.is_dead(tmp_path, "r1") is True
    path.write_text(json.dumps({**left, "host": f"another/{boot}"}))
    assert trace.is_dead(tmp_path, "r1") is None


def test_own_run_is_found_among_others(tmp_path: Path) -> None:
    trace.leave(tmp_path, "old")
    known = trace.run_ids(tmp_path)
    trace.leave(tmp_path, "new")
    assert trace.wait_for_own(tmp_path, known, threading.Event()) == "new"
    path = tmp_path / "runs" / "new" / "executor.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "pid": os.getpid() + 1}))
    ended = threading.Event()
    ended.set()
    assert trace.wait_for_own(tmp_path, known, ended) is None
