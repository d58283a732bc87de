"""Follows a run by its event file, whoever executes it: redrawn on a terminal, one plain line per event elsewhere."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from flows.screen import Screen, cell, seconds
from tasks.events import events_path

if TYPE_CHECKING:
    from rich.table import Table

Event = dict[str, Any]

PLAIN_PROGRESS_EVERY_S = 10.0
LOOK_EVERY_S = 0.25
MARKS = {"built": "●", "cached": "○", "failed": "✗", "waiting": "…", "start": "·", "note": "·", "progress": "·"}
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


@dataclass(slots=True)
class Tail:
    """New whole lines of a growing JSON-lines file; a line still being written waits for its end."""

    path: Path
    offset: int = 0

    def new(self) -> list[Event]:
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self.offset)
            whole, newline, _ = file.read().rpartition(b"\n")
        self.offset += len(whole) + len(newline)
        return [json.loads(line) for line in whole.splitlines()]


@dataclass(slots=True)
class Row:
    """One stage as it stands. rate: units per second of this attempt."""

    stage: str
    state: str
    text: str = ""
    began: float = 0.0
    seconds: float | None = None
    first: tuple[float, int] | None = None


@dataclass(slots=True)
class Board:
    """Stages in the order in which they were met; a pure fold over events."""

    rows: dict[str, Row] = field(default_factory=dict)

    def take(self, event: Event) -> Row | None:
        """The row that the event changed; None for events of the run as a whole."""
        if not event["stage"]:
            return None
        row = self.rows.get(event["stage"])
        if row is None or (event["event"] == "start" and row.state in ("failed", "built", "cached")):
            row = self.rows[event["stage"]] = Row(stage=event["stage"], state="start", began=event["t"])
        match event["event"]:
            case "start":
                row.text = f"building: {'; '.join(event['why'])}"
            case "progress":
                row.state, row.text = "progress", _progress(row, event)
            case "summary":
                row.text = event["line"]
            case "built" | "cached":
                row.state, row.text, row.seconds = event["event"], event["line"] or row.text, event["seconds"]
            case "failed":
                row.state, row.text, row.seconds = "failed", event["error"], event["t"] - row.began
            case "waiting" | "note":
                row.state, row.text = event["event"], event["text"]
        return row


class View(Protocol):
    """Shows a board as it changes."""

    def changed(self, row: Row, event: Event) -> None: ...
    def tick(self, note: str) -> None: ...
    def close(self) -> None: ...


def follow(home: Path, run_id: str, over: Callable[[], str | None], screen: Screen) -> Board:
    """Show the events of a run until `over()` is not None, and then what was left in the file.

    `over` gives the run's final state, or None while it lasts; it may raise to end the following.
    """
    tail, board = Tail(events_path(home, run_id)), Board()
    view: View = LiveView(screen, board) if screen.is_live else PlainView(screen)
    try:
        ended: str | None = None
        while ended is None:
            ended = over()
            for event in tail.new():
                if row := board.take(event):
                    view.changed(row, event)
            view.tick("")
            if ended is None:
                time.sleep(LOOK_EVERY_S)
    finally:
        view.close()
    return board


class PlainView:
    """A line per event; progress at most every ten seconds."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._told = time.monotonic()

    def changed(self, row: Row, event: Event) -> None:
        if event["event"] == "summary":
            return
        if event["event"] == "progress":
            if time.monotonic() - self._told < PLAIN_PROGRESS_EVERY_S:
                return
            self._told = time.monotonic()
        self._screen.line(plain(row))

    def tick(self, note: str) -> None:
        """Nothing moves."""

    def close(self) -> None:
        """Nothing to put away."""


class LiveView:
    """The board as a table that is drawn anew four times a second."""

    def __init__(self, screen: Screen, board: Board) -> None:
        from rich.live import Live

        self._board = board
        self._live = Live(console=screen.console, auto_refresh=False, transient=False)
        self._live.start()

    def changed(self, row: Row, event: Event) -> None:
        """Drawn by the next tick."""

    def tick(self, note: str) -> None:
        self._live.update(table(self._board, time.time()), refresh=True)

    def close(self) -> None:
        self.tick("")
        self._live.stop()


def plain(row: Row) -> str:
    """`  train        ● loss 0.043 · 1,200 steps                2m 31s`."""
    took = "" if row.seconds is None or row.state == "cached" else f"  {seconds(row.seconds)}"
    return f"  {row.stage:<12} {MARKS[row.state]} {_first_line(row)}{took}"


def table(board: Board, now: float) -> "Table":
    """The board for a terminal: stage, mark, what it says, seconds."""
    from rich.table import Table

    drawn = Table.grid(padding=(0, 1), expand=True)
    for ratio in (None, None, 1):
        drawn.add_column(ratio=ratio, no_wrap=True, overflow="ellipsis")
    drawn.add_column(justify="right", no_wrap=True)
    colours = {"built": "green", "cached": "cyan", "failed": "red", "waiting": "yellow"}
    for row in board.rows.values():
        running = row.state in ("start", "progress", "note")
        mark = SPINNER[int(now * 8) % len(SPINNER)] if running else MARKS[row.state]
        took = row.seconds if row.seconds is not None else now - row.began
        shown = "" if row.state == "cached" else seconds(took)
        drawn.add_row(f"  {row.stage:<12}", cell(mark, colours.get(row.state, "")), cell(_first_line(row)), shown)
    return drawn


def _first_line(row: Row) -> str:
    text = row.text.splitlines()[0] if row.text else ""
    return f"{text} (done before)" if row.state == "cached" else text


def _progress(row: Row, event: Event) -> str:
    """`step 812/1,500 · loss 0.083 · 1m 12s left`."""
    done, total = event["done"], event["total"]
    if row.first is None or done < row.first[1]:
        row.first = (event["t"], done)
    began, at = row.first
    rate = (done - at) / (event["t"] - began) if event["t"] > began else 0.0
    parts = [f"{event['unit']} {done:,}/{total:,}" if total else f"{done:,} {event['unit']}"]
    parts += [f"{name} {_figure(value)}" for name, value in event["figures"].items()]
    if total and rate > 0:
        parts.append(f"{seconds((total - done) / rate)} left")
    return " · ".join(parts)


def _figure(value: float) -> str:
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:.3g}"
