"""The job's outer shell: a beat while it lives, and a file that says why it failed."""

import json
import threading
import time
from pathlib import Path

import pytest

from errors import Transient, UserError
from tasks.workers import train_worker
from tasks.workers.train_worker import main


def test_a_job_that_cannot_begin_says_why(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text("{}")
    assert main(["--job", str(tmp_path / "job.json")]) == 1
    told = json.loads((tmp_path / "error.json").read_text())
    assert told["code"] == "TRAIN-001"
    assert told["message"] == "the training job failed: KeyError: 'threads'"
    assert not told["transient"]


def test_the_beat_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_worker, "BEAT_S", 0.01)
    threading.Thread(target=train_worker._beat, args=(tmp_path / "beat",), daemon=True).start()
    seen: set[str] = set()
    deadline = time.monotonic() + 5
    while len(seen) < 3 and time.monotonic() < deadline:
        if (tmp_path / "beat").exists():
            seen.add((tmp_path / "beat").read_text())
    assert len(seen) == 3


def test_what_a_person_must_mend_keeps_its_parts() -> None:
    error = UserError("TRAIN-003", "not finite", where="step 9", done="nothing", next_step="lower the rate")
    assert train_worker._told(error) == {
        "transient": False,
        "code": "TRAIN-003",
        "message": "not finite",
        "where": "step 9",
        "done": "nothing",
        "next_step": "lower the rate",
    }
    assert train_worker._told(Transient("preempted"))["transient"]
