"""Tests the champion again on starts that it has never met; ends Failed, with an artifact, when it got worse."""

from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, cast

from prefect.artifacts import create_markdown_artifact
from prefect.states import Completed, Failed

from data_lake.files import LakePath
from data_lake.refs import EvalReport, Ref, TaskResult, from_json
from data_lake.store import records
from flows.places import places
from flows.profile import load_profile
from flows.server import loop_flow, present_run
from tasks.catalogue import evaluate
from tasks.specs import EvaluateStage
from tasks.stage import artifact_key

SEEDS_PER_DAY = 10_000
"""Fresh starts: each day has seeds of its own, far from those of demonstrations and of the gate's suite."""

FIRST_DAY = date(2020, 1, 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Champion:
    """What a champion was registered with: its export and what evaluating it takes."""

    version: int
    spec: EvaluateStage
    refs: tuple[Ref, ...]
    report: EvalReport


def run_name() -> str:
    """`tiny nightly · 2026-12-02`, in UTC."""
    return f"{present_run().parameters['model']} nightly · {today()}"


def today() -> date:
    """The day that the run was meant for: a Retry on the morning after tests the same starts."""
    return present_run().expected_start.date()


@loop_flow(name="nightly-eval", flow_run_name=run_name)
def nightly_eval(model: str = "tiny", profile: str = "laptop", lake: str | None = None, home: str | None = None) -> Any:
    """Completed when the champion does as well as when it was registered, Failed when it is worse.

    model: the registered model's name. profile: where it runs. Run twice on one day, it evaluates once.
    """
    run_id = present_run().run_id
    runtime = load_profile(profile, places(lake, home), run_id=run_id, label=f"{model} nightly")
    champion = champion_of(model, runtime.lake, runtime.home)
    if champion is None:
        return Completed(name="NoChampion", message=f"model {model} has no champion yet")
    spec = fresh(champion.spec, today())
    report = cast(EvalReport, evaluate(spec, *champion.refs, runtime=runtime))
    worse = worse_tasks(champion.report.tasks, report.tasks)
    create_markdown_artifact(markdown(model, champion, report, worse), key=artifact_key(f"{model}-nightly"))
    sentence = f"{model} v{champion.version}: {verdict(worse)}"
    return Failed(message=sentence) if worse else Completed(message=sentence, data=report)


def champion_of(model: str, lake: LakePath, home: Path) -> Champion | None:
    """The champion's records, by the fingerprint of the slot that registered it. None when there is none."""
    from tasks.promotion import champion
    from tasks.registry import connect  # MLflow takes seconds to import

    version = champion(connect(lake, home), model)
    if version is None:
        return None
    known = {record["fingerprint"]: record for record in records(lake)}
    _, report = known[version.fingerprint]["inputs"]
    evaluated = known[report["fingerprint"]]
    return Champion(
        version=version.number,
        spec=_parsed(evaluated["identity"]["spec"]),
        refs=tuple(from_json(each) for each in evaluated["inputs"]),
        report=from_json(evaluated["ref"]),
    )


def fresh(spec: EvaluateStage, day: date) -> EvaluateStage:
    """The same suite with the seeds of `day`; offline suites have none and stay as they are."""
    if spec.evaluate.scene is None:
        return spec
    first = spec.evaluate.first_seed + SEEDS_PER_DAY * (day - FIRST_DAY).days
    return replace(spec, evaluate=replace(spec.evaluate, first_seed=first))


def worse_tasks(before: tuple[TaskResult, ...], now: tuple[TaskResult, ...]) -> list[str]:
    """Tasks whose whole 95 % interval lies below the one at registration: no accident of a few episodes."""
    known = {task.task: task for task in before}
    return [task.task for task in now if task.task in known and task.high < known[task.task].low]


def verdict(worse: list[str]) -> str:
    return f"worse than when it was registered at {', '.join(worse)}" if worse else "as good as when it was registered"


def markdown(model: str, champion: Champion, report: EvalReport, worse: list[str]) -> str:
    """The artifact: verdict, then both results per task with their intervals."""
    known = {task.task: task for task in champion.report.tasks}
    rows = [f"| {task.task} | {_shown(known.get(task.task))} | {_shown(task)} |" for task in report.tasks]
    head = f"## {model} v{champion.version}: {verdict(worse)}\n\n| task | when registered | tonight |\n|---|---|---|\n"
    safety = f"\n\ncollisions {report.collisions} · limit hits {report.limit_hits} · non-finite {report.non_finite}"
    return head + "\n".join(rows) + safety


def _shown(task: TaskResult | None) -> str:
    return "–" if task is None else f"{task.k}/{task.n} ({task.low:.0%}–{task.high:.0%})"


def _parsed(spec: dict[str, Any]) -> EvaluateStage:
    """The spec of a record; what it left out (labels, neutral fields) is at its default."""
    import pydantic

    return pydantic.TypeAdapter(EvaluateStage).validate_python(spec)
