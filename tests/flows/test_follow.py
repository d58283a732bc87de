"""Following a run: whole lines only, a fold over events, plain lines where nobody redraws."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from flows.follow import Board, Tail, follow, plain, table
from flows.screen import Screen


def event(name: str, stage: str = "train", t: float = 0.0, **fields: Any) -> dict[str, Any]:
    return {"t": t, "stage": stage, "slot": "77c1", "event": name, **fields}


def progress(t: float, done: int, **figures: float) -> dict[str, Any]:
    return event("progress", t=t, done=done, total=100, unit="steps", figures=figures)


def test_a_line_being_written_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tail = Tail(path)
    assert tail.new() == []
    path.write_text('{"n": 1}\n{"n"')
    assert tail.new() == [{"n": 1}]
    with path.open("a") as file:
        file.write(': 2}\n{"n": 3}\n')
    assert tail.new() == [{"n": 2}, {"n": 3}]
    assert tail.new() == []


def test_board_folds_events() -> None:
    board = Board()
    board.take(event("start", why=["train.num_steps: 50 -> 60"]))
    assert plain(board.rows["train"]) == "  train        · building: train.num_steps: 50 -> 60"
    board.take(progress(10.0, 20, loss=0.5))
    board.take(progress(20.0, 40, loss=0.25))
    assert board.rows["train"].text == "steps 40/100 · loss 0.25 · 30s left"  # 2 a second, 60 to go
    board.take(event("summary", line="100 steps"))
    board.take(event("built", t=61.0, line="", seconds=61.0))
    assert plain(board.rows["train"]) == "  train        ● 100 steps  1m 01s"


def test_board_shows_cached_failed_and_waiting() -> None:
    board = Board()
    board.take(event("cached", stage="pack", line="23 rows", seconds=0.0))
    board.take(event("start", why=["upstream"], t=5.0))
    board.take(event("waiting", text="waits for run 12345678 (pid 7), which builds the same slot"))
    assert "waits for run 12345678" in plain(board.rows["train"])
    board.take(event("failed", t=8.0, error="UserError: TRAIN-001: no rows\n  next: add some"))
    assert plain(board.rows["pack"]) == "  pack         ○ 23 rows (done before)"
    assert plain(board.rows["train"]) == "  train        ✗ UserError: TRAIN-001: no rows  3s"


def test_a_retry_begins_the_row_anew() -> None:
    board = Board()
    for each in (
        event("start", why=["first build"]),
        event("failed", error="x", t=1.0),
        event("start", why=["y"], t=9.0),
    ):
        board.take(each)
    assert (board.rows["train"].state, board.rows["train"].began) == ("start", 9.0)


def test_events_of_the_run_itself_have_no_row() -> None:
    board = Board()
    assert board.take(event("run", stage="", recipe="tiny")) is None
    assert board.rows == {}


def test_follow_shows_what_is_written_until_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "runs" / "r1" / "events.jsonl"
    path.parent.mkdir(parents=True)
    answers = iter([None, None, "COMPLETED"])

    def over() -> str | None:
        """Each look comes after another event; the last one is written after the run has ended."""
        found = next(answers)
        with path.open("a") as file:
            name = "built" if found else "summary"
            file.write(json.dumps(event(name, line="done", seconds=4.0)) + "\n")
        return found

    board = follow(tmp_path, "r1", over, Screen())
    assert board.rows["train"].state == "built"
    assert capsys.readouterr().out == "  train        ● done  4s\n"


def test_the_live_table_has_a_row_per_stage() -> None:
    board = Board()
    board.take(event("cached", stage="pack", line="23 rows", seconds=0.0))
    board.take(event("start", why=["upstream"], t=time.time()))
    assert table(board, time.time()).row_count == 2
