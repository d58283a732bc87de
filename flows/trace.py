"""Which process executes a flow run: written when the run begins, so that its death can be told from silence.

Prefect alone leaves a run whose process was killed in `Running` for ever. Standard library only.
"""

import json
import os
import threading
from dataclasses import asdict
from pathlib import Path

from data_lake.files import replace
from data_lake.lease import this_host
from flows.services.alive import Started


def leave(home: Path, run_id: str) -> None:
    """Say that this very process executes the run."""
    path = _path(home, run_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, json.dumps({"host": this_host(), **asdict(Started.now(os.getpid()))}).encode())


def is_dead(home: Path, run_id: str) -> bool | None:
    """Whether the run's process has ended; None when that cannot be known here."""
    path = _path(home, run_id)
    if not path.exists():
        return None
    left = json.loads(path.read_text())
    if left["host"].partition("/")[0] != this_host().partition("/")[0]:
        return None
    return left["host"] != this_host() or not Started(pid=left["pid"], since=left["since"]).is_alive()


def left_at(home: Path, run_id: str) -> float:
    """When the run's executor said so, in seconds since 1970; 0 when nobody did."""
    path = _path(home, run_id)
    return path.stat().st_mtime if path.exists() else 0.0


def run_ids(home: Path) -> set[str]:
    """Runs that somebody has begun to execute."""
    return {path.parent.name for path in (home / "runs").glob("*/executor.json")}


def wait_for_own(home: Path, known: set[str], ended: threading.Event) -> str | None:
    """The id of the first run beyond `known` that this process executes; None when there is none until `ended`."""
    last = False
    while not last:
        last = ended.wait(0.1)
        for run_id in run_ids(home) - known:
            left = json.loads(_path(home, run_id).read_text())
            if left["pid"] == os.getpid() and left["host"] == this_host():
                return run_id
    return None


def _path(home: Path, run_id: str) -> Path:
    return home / "runs" / run_id / "executor.json"
