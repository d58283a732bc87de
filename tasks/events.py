"""What a run tells those who follow it: one JSON line per event in {home}/runs/{run_id}/events.jsonl.

A terminal, the report and a second process all read the same file, whoever executes the run.
"""

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tasks.runtime import Note, Progress, Report, Runtime, Summary


def events_path(home: Path, run_id: str) -> Path:
    return home / "runs" / run_id / "events.jsonl"


@dataclass(frozen=True, kw_only=True, slots=True)
class StageEvents:
    """Writes the events of one stage of one run, and passes reports on to the runtime's own sink."""

    stage: str
    slot: str
    runtime: Runtime

    def write(self, event: str, **fields: Any) -> None:
        """Append one line: start, waiting, progress, note, summary, cached, built or failed."""
        path = events_path(self.runtime.home, self.runtime.run_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"t": time.time(), "stage": self.stage, "slot": self.slot, "event": event, **fields})
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, (line + "\n").encode())  # one write: lines of parallel writers do not mix
        finally:
            os.close(descriptor)

    def report(self, report: Report) -> None:
        match report:
            case Progress():
                self.write("progress", **asdict(report))
            case Note():
                self.write("note", text=report.text)
            case Summary():
                self.write("summary", line=report.line)
        self.runtime.sink(report)


def read_events(home: Path, run_id: str) -> list[dict[str, Any]]:
    """All whole lines written so far."""
    path = events_path(home, run_id)
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
