"""What success of `tiny` means: does the policy see, does it read, and is the suite more than luck?

Same seeds and same budget throughout. `random`: uniform actions. `instruction_swapped`: the two faucet tasks, each
with the other's sentence, scored on the original goal; `other_goal`: on the goal that the sentence names.
`blind_gap`: success on button and drawer, minus that of a policy trained and tested on grey views.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.reporting import Target, result
from data_lake.refs import EvalReport, ExportRef, PreprocessedRef, Ref
from flows.loop import closed_loop
from flows.places import Places
from flows.profile import load_profile
from flows.recipe import LoopRecipe, load, resolve
from model_core.specs import EvaluateSpec
from tasks import catalogue
from tasks.build import Stage, build
from tasks.runtime import Runtime
from tasks.specs import EvaluateStage

PACKAGES = ("torch", "mujoco", "metaworld", "numpy")
SIGHT_TASKS = ("button-press-topdown-v3", "drawer-open-v3")
FAUCETS = ("faucet-open-v3", "faucet-close-v3")


@dataclass(frozen=True, kw_only=True, slots=True)
class Proved:
    """A policy and what it did in its recipe's own suite."""

    export: ExportRef
    preprocessed: PreprocessedRef
    report: EvalReport


class _Stop(Exception):
    """The walk has what it came for: controls are not registered."""


def main(lake: Path, home: Path) -> dict[str, Any]:
    """The object of `bench controls`. What the lake has (a finished `run tiny`) is used, the rest is built."""
    runtime = load_profile("laptop", Places(lake=lake, home=home), run_id="bench-controls", label="controls")
    tiny = load("tiny")
    seeing = prove(tiny, runtime)
    blind = prove(load("tiny", ["policy.inputs.sight=grey"]), runtime)
    swapped = evaluated(swapped_suite(tiny.evaluate), seeing, runtime)
    random = evaluated(replace(tiny.evaluate, suite="metaworld-random", actor="random"), seeing, runtime)
    reports = {"seeing": seeing.report, "blind": blind.report, "instruction_swapped": swapped, "random": random}
    episodes = {name: _episodes(report, runtime) for name, report in reports.items()}
    gap = _rate(episodes["seeing"], SIGHT_TASKS) - _rate(episodes["blind"], SIGHT_TASKS)
    return result(
        "controls",
        [
            Target(name="random", value=_rate(episodes["random"]), target=0.05, op="<="),
            Target(name="instruction_swapped", value=_rate(episodes["instruction_swapped"]), target=0.1, op="<="),
            Target(
                name="other_goal", value=_rate(episodes["instruction_swapped"], key="other_goal"), target=0.6, op=">="
            ),
            Target(name="blind_gap", value=round(gap, 4), target=0.35, op=">="),
        ],
        {name: _contender(report) for name, report in reports.items()},
        episodes,
        PACKAGES,
    )


def prove(recipe: LoopRecipe, runtime: Runtime) -> Proved:
    """Walk the loop of `recipe` up to its evaluation, building what is missing."""
    kept: dict[str, Any] = {}

    def call(stage: Stage, spec: Any, *refs: Ref) -> Ref:
        if stage is catalogue.register:
            raise _Stop
        kept[stage.name] = build(stage, spec, *refs, runtime=runtime).ref
        return kept[stage.name]

    with suppress(_Stop):
        closed_loop(resolve(recipe), None, call)
    return Proved(export=kept["export"], preprocessed=kept["preprocess"], report=kept["evaluate"])


def swapped_suite(suite: EvaluateSpec) -> EvaluateSpec:
    """The faucet tasks, each asked for with the other's instruction."""
    pair = [task for task in suite.tasks if task.name in FAUCETS]
    other = {pair[0].name: pair[1].instruction, pair[1].name: pair[0].instruction}
    tasks = tuple(replace(task, instruction=other[task.name]) for task in pair)
    return replace(suite, suite="metaworld-swapped", tasks=tasks)


def evaluated(suite: EvaluateSpec, policy: Proved, runtime: Runtime) -> EvalReport:
    stage = EvaluateStage(evaluate=suite)
    ref = build(catalogue.evaluate, stage, policy.export, policy.preprocessed, runtime=runtime).ref
    assert isinstance(ref, EvalReport)
    return ref


def _episodes(report: EvalReport, runtime: Runtime) -> list[dict[str, Any]]:
    """Outcome per episode; the raw samples of this benchmark."""
    found = json.loads((runtime.path(report.uri) / "report.json").read_text())["episodes"]
    kept = ("task", "instruction", "seed", "success", "other_goal", "steps")
    return [{key: episode.get(key) for key in kept} for episode in found]


def _rate(episodes: Sequence[dict[str, Any]], tasks: Sequence[str] = (), key: str = "success") -> float:
    chosen = [episode[key] for episode in episodes if not tasks or episode["task"] in tasks]
    return round(sum(bool(value) for value in chosen) / len(chosen), 4)


def _contender(report: EvalReport) -> dict[str, Any]:
    tasks = {task.task: {"n": task.n, "k": task.k, "low": task.low, "high": task.high} for task in report.tasks}
    return {"suite": report.suite, "simulator": report.simulator, "score": report.score, "success": tasks}
