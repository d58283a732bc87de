"""Training metrics on their way to MLflow: metrics.jsonl is the spool, so MLflow may be away for as long as it likes.

A line goes out at most once: forwarding continues after the last step that MLflow has. What could not be sent
when training ended is noted at home, and the next forwarder sends it.
"""

import hashlib
import json
import math
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mlflow.entities import Metric, Param
from mlflow.exceptions import MlflowException
from sqlalchemy.exc import SQLAlchemyError

from data_lake.files import LakePath, replace
from errors import Transient
from tasks.registry import MAX_PARAM, Registry, connect
from tasks.spool import read_lines

FIGURES = ("loss", "lr", "grad_norm", "samples_per_s", "input_wait")
STEPS_PER_CALL = 150  # MLflow takes at most 1000 metrics a call
PARAMS_PER_CALL = 100
PERIOD_S = 5.0
AWAY = (MlflowException, SQLAlchemyError, OSError, Transient)  # what a tracking server that is away may raise


@dataclass(frozen=True, kw_only=True, slots=True)
class Spool:
    """Where the lines of a training run are, and what MLflow shall know of it. `slot`: like `train/77c1…`."""

    path: Path
    slot: str
    title: str
    settings: dict[str, Any]


def forward(registry: Registry, spool: Spool) -> int:
    """Send the lines that MLflow lacks; returns how many. Raises one of `AWAY` when it cannot."""
    run_id = registry.run_of(spool.slot, spool.title)
    log_settings(registry, run_id, spool.settings)
    sent = last_step(registry, run_id)
    lines = [line for line in read_lines(spool.path) if line["step"] > sent]
    for first in range(0, len(lines), STEPS_PER_CALL):
        part = lines[first : first + STEPS_PER_CALL]
        registry.client.log_batch(run_id, metrics=[metric for line in part for metric in _metrics(line)])
    for line in lines:
        if line["skipped"]:  # an event: NaN as a metric would break MLflow's pages
            registry.client.set_tag(
                run_id, f"event.step-{line['step']:06d}", "loss or gradient not finite, step skipped"
            )
    return len(lines)


def last_step(registry: Registry, run_id: str) -> int:
    """The last training step that MLflow has; -1 for none."""
    return max((metric.step for metric in registry.client.get_metric_history(run_id, "lr")), default=-1)


def log_settings(registry: Registry, run_id: str, settings: Mapping[str, Any]) -> None:
    """The spec as a file with its hash as a parameter, and its short leaves as parameters (changed ones as tags)."""
    known = registry.client.get_run(run_id).data.params
    text = json.dumps(settings, indent=1, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    if known.get("spec_sha256") == digest:
        return
    registry.client.log_text(run_id, text, "spec.json")
    leaves = {name: str(value) for name, value in _leaves(settings)}
    shown = {name: value for name, value in leaves.items() if len(value) <= MAX_PARAM} | {"spec_sha256": digest}
    new = [Param(name, value) for name, value in shown.items() if name not in known]
    for first in range(0, len(new), PARAMS_PER_CALL):
        registry.client.log_batch(run_id, params=new[first : first + PARAMS_PER_CALL])
    for name, value in shown.items():
        if known.get(name, value) != value:
            registry.client.set_tag(run_id, f"vlaloop.{name}", value)


def _metrics(line: Mapping[str, Any]) -> list[Metric]:
    # the line's own time: the same line sent twice is one row in MLflow's table
    return [
        Metric(name, float(line[name]), int(line["time"] * 1000), line["step"])
        for name in FIGURES
        if line[name] is not None and math.isfinite(line[name])
    ]


def _leaves(settings: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found = []
    for name, value in settings.items():
        path = f"{prefix}.{name}" if prefix else name
        found += _leaves(value, path) if isinstance(value, Mapping) else [(path, value)]
    return found


class Forwarder:
    """Forwards a spool every few seconds from a thread of its own. Never raises, never holds training up."""

    def __init__(
        self,
        spool: Spool,
        *,
        lake: LakePath,
        home: Path,
        period_s: float = PERIOD_S,
        connect: Callable[[LakePath, Path], Registry] = connect,
    ) -> None:
        self._spool, self._lake, self._home, self._period_s = spool, lake, home, period_s
        self._connect = connect
        self._registry: Registry | None = None
        self._closing = threading.Event()
        self.fault = ""
        self.pending = True
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)

    def start(self) -> "Forwarder":
        self._thread.start()
        return self

    def close(self, timeout_s: float = 20.0) -> str:
        """Send the rest; returns "" or a sentence saying what is left and why. Returns within `timeout_s`."""
        self._closing.set()
        self._thread.join(timeout_s)
        if not self.pending and not self._thread.is_alive():
            return ""
        note = self._home / "metrics-pending" / f"{self._spool.slot.replace('/', '-')}.json"
        replace(note, json.dumps(asdict(self._spool), default=str).encode())
        reason = self.fault or "no answer yet"
        return f"MLflow lacks metrics of this training ({reason}); they are kept and go out with the next one"

    def _run(self) -> None:
        failures = 0
        while not self._closing.wait(self._pause_s(failures)):
            failures = 0 if self._try() else failures + 1
        for pause_s in (0.5, 2.0, 0.0):  # the rest, after training has ended
            if self._try():
                self.pending = False
                self._send_what_waits()
                return
            time.sleep(pause_s)

    def _pause_s(self, failures: int) -> float:
        """Longer after each failure, at most a minute, with jitter so that runs do not knock together."""
        return min(60.0, self._period_s * 2.0**failures) * random.uniform(0.7, 1.3)

    def _try(self) -> bool:
        try:
            if not self._spool.path.exists():
                return True
            if self._registry is None:
                self._registry = self._connect(self._lake, self._home)
            forward(self._registry, self._spool)
        except AWAY as error:
            self.fault = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            return False
        return True

    def _send_what_waits(self) -> None:
        """Spools of earlier runs during which MLflow was away."""
        for note in sorted((self._home / "metrics-pending").glob("*.json")):
            kept = json.loads(note.read_text())
            try:
                if self._registry is not None:
                    forward(self._registry, Spool(**kept | {"path": Path(kept["path"])}))
            except AWAY:
                return
            note.unlink(missing_ok=True)
