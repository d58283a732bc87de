"""What a loop gave, from its records and events: the object that machines get and the table that people read."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data_lake.files import LakePath
from data_lake.words import counted
from flows.plan import PlannedStage
from flows.screen import cell, seconds
from flows.services import ledger
from tasks.promotion import alias_now

if TYPE_CHECKING:
    from rich.table import Table

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """`planned` as it is after the run; `events` of the run, empty when everything was done before.

    changes: what was set on the recipe, as `field=value`. until: the last stage that was asked for, None for all. home:
    local state, where MLflow's file is.
    """

    recipe: str
    changes: tuple[str, ...] = ()
    until: str | None = None
    lake: LakePath
    home: Path
    planned: Sequence[PlannedStage]
    events: Sequence[Json] = ()

    def as_json(self) -> Json:
        """The object of `run`."""
        stages = [self._stage(stage) for stage in self.planned]
        built = [stage.record for stage in self.planned if stage.record and self._state(stage) == "built"]
        return {
            "recipe": self.recipe,
            "lake": str(self.lake),
            "seconds": self.seconds,
            "cpu_seconds": round(sum(record["provenance"]["cpu_seconds"] for record in built), 3),
            "stages": stages,
            "result": result(self.refs, self.alias),
        }

    @property
    def refs(self) -> dict[str, Json]:
        """Finished refs by stage."""
        return {each.stage.title: each.record["ref"] for each in self.planned if each.record}

    @property
    def alias(self) -> str | None:
        """The alias that the registered version has now; a later one may have taken it."""
        version = self.refs.get("register")
        return alias_now(self.lake, version["name"], version["version"]) if version else None

    @property
    def seconds(self) -> float:
        """First stage start to last record of this run."""
        times = [event["t"] for event in self.events if event["stage"]]
        return round(max(times) - min(times), 3) if times else 0.0

    @property
    def is_rejected(self) -> bool:
        """Everything ran, and the gate promoted nothing."""
        version = self.refs.get("register")
        return version is not None and not version["accepted"]

    def _stage(self, planned: PlannedStage) -> Json:
        name = planned.stage.title
        started = [event for event in self.events if event["stage"] == name and event["event"] == "start"]
        ended = [event for event in self.events if event["stage"] == name and "seconds" in event]
        return {
            "name": name,
            "slot": slot_name(planned),
            "state": self._state(planned),
            "why": list(started[-1]["why"]) if started else list(planned.why),
            "seconds": round(ended[-1]["seconds"], 3) if ended else 0.0,
            "ref": planned.record["ref"] if planned.record else None,
        }

    def _state(self, planned: PlannedStage) -> str:
        """built: by this run. failed: its last word in this run. skipped: it was never reached."""
        happened = [event["event"] for event in self.events if event["stage"] == planned.stage.title]
        if "built" in happened:
            return "built"
        if planned.record:
            return "cached"
        return "failed" if "failed" in happened else "skipped"


def slot_name(planned: PlannedStage) -> str | None:
    """`train/77c1…` in full; None while an upstream data set is unknown."""
    return f"{planned.stage.name}/{planned.slot.fingerprint}" if planned.slot else None


def result(refs: dict[str, Json], alias: str | None) -> Json:
    """Success per task, safety, export and model version, as far as they are known; `alias` is the version's now."""
    report, export, version = refs.get("evaluate"), refs.get("export"), refs.get("register")
    found: Json = {"success": {}, "safety": None, "export": None, "model_version": None, "alias": None}
    if report:
        found["success"] = {
            task["task"]: {key: task[key] for key in ("n", "k", "low", "high", "safe")} for task in report["tasks"]
        }
        found["safety"] = {key: report[key] for key in ("collisions", "limit_hits", "non_finite")}
        found["score"] = report["score"]
        if report["error"] is not None:
            found["error"] = report["error"]
            found["baselines"] = dict(report["baselines"])
    if export:
        kept = ("precision", "num_bytes", "action_error", "language_saving", "total_saving")
        found["export"] = {key: export[key] for key in kept}
    if version:
        found["model_version"] = {key: version[key] for key in ("name", "version", "decision")}
        found["alias"] = alias
    return found


def success_table(refs: dict[str, Json]) -> "Table | None":
    """Success per task with 95 % interval; None where nothing was rolled out."""
    from rich.table import Table

    report = refs.get("evaluate")
    if not report or not report["tasks"]:
        return None
    drawn = Table(box=None, padding=(0, 2), header_style="bold")
    drawn.add_column("")
    for title in ("success (95 %)", "safe success", "mean s/episode"):
        drawn.add_column(title, justify="right")
    for task in report["tasks"]:
        interval = f"({100 * task['low']:.0f}–{100 * task['high']:.0f}%)"
        mean_s = f"{task['seconds']:.1f}"
        drawn.add_row(
            cell(task["task"]), f"{task['k']}/{task['n']} {interval:>10}", f"{task['safe']}/{task['n']}", mean_s
        )
    return drawn


def closing_lines(outcome: Outcome) -> list[str]:
    """What a person reads below the table: figures, and what to do next."""
    refs, lines = outcome.refs, []
    if report := refs.get("evaluate"):
        if report["error"] is not None:
            rivals = " · ".join(f"{name} {error:.3f}" for name, error in report["baselines"])
            lines.append(f"  open-loop error {report['error']:.3f} standard deviations · baselines: {rivals}")
        safety = f"collisions {report['collisions']} · limit hits {report['limit_hits']}"
        lines.append(f"  safety: {safety} · non-finite {report['non_finite']}")
    if packed := refs.get("pack"):
        dataset, checkpoint = refs["ingest"], refs.get("train")
        line = f"  {counted(dataset['num_episodes'], 'episode')} · {counted(dataset['num_frames'], 'frame')}"
        line += f" · fill {100 * packed['fill_rate']:.1f} %"
        lines.append(line + (f" · loss {checkpoint['loss']:.4f}" if checkpoint else ""))
    if export := refs.get("export"):
        lines.append(
            f"  FP8: language part {100 * export['language_saving']:.1f} % smaller than bf16, whole policy "
            f"{100 * export['total_saving']:.1f} % · action error {100 * export['action_error']:.2f} % of noise"
        )
    if version := refs.get("register"):
        lines.append(
            f"  {version['name']} v{version['version']}{_arrow(version, outcome.alias)} · {version['decision']}"
        )
    built = [event for event in outcome.events if event["event"] == "built"]
    if built:
        spent = " · ".join(f"{event['stage']} {seconds(event['seconds'])}" for event in built)
        lines.append(f"  {spent} · {seconds(outcome.seconds)} in all")
    else:
        lines.append("  nothing to build: every stage was done before")
    if outcome.until:
        lines.append(f"  built until {outcome.until}, as asked; the stages after it wait")
    return [*lines, "", *next_steps(outcome)]


def _arrow(version: Json, alias: str | None) -> str:
    if not version["alias"]:
        return " · not promoted"
    if alias == version["alias"]:
        return f" → {alias}"
    return f" was {version['alias']}, is {alias or 'without an alias'} now"


def _ui(home: Path) -> str:
    """Where the user interfaces are, or what starts them."""
    running = [service for service in ledger.read(home).services if service.url and service.is_alive()]
    return " · ".join(f"{service.name} {service.url}" for service in running) or "./vlaloop up"


def next_steps(outcome: Outcome) -> list[str]:
    """Commands that a person can paste: they mean this very run, also when a later one is champion."""
    version = outcome.refs.get("register")
    asked = " ".join([outcome.recipe, *(f"--set {shlex.quote(change)}" for change in outcome.changes)])
    if outcome.until:
        return [f"  go on     ./vlaloop run {asked}", f"  UI        {_ui(outcome.home)}"]
    steps = [f"  report    ./vlaloop report {asked}", f"  UI        {_ui(outcome.home)}"]
    steps.append(f"  change    ./vlaloop plan {asked} --set train.num_steps=3000")
    if version and version["alias"]:
        if not os.environ.get("MLFLOW_TRACKING_URI"):
            steps.append(f'  use       mlflow.set_tracking_uri("sqlite:///{outcome.home / "mlflow.db"}")')
        steps.append(f'            mlflow.pyfunc.load_model("models:/{version["name"]}/{version["version"]}")')
    return steps
