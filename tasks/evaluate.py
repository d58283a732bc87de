"""What a policy can do: rollouts in simulation, merged once per (task, seed), or open loop where no world is given."""

import dataclasses
import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from data_lake.identity import fingerprint as digest
from data_lake.refs import EvalReport, ExportRef, PreprocessedRef, TaskResult
from data_lake.store import Attempt
from errors import UserError
from model_core.embodiments import find_embodiment
from model_core.sim.simulator import is_installed
from model_core.specs import EvaluateSpec, SceneSpec
from tasks.offline import evaluate_offline
from tasks.outcomes import EpisodeResult, merged, safety, seeds_of, task_results, to_film, wilson
from tasks.runtime import Note, Progress, Runtime, Summary
from tasks.specs import EvaluateStage
from tasks.workers.crew import Crew, Unit

WORKER = "tasks.workers.rollout_worker"
BLOCKS = "blocks"  # results of finished blocks, until there is a report
REPORT = "report.json"
ACTIONS = "actions.npy"  # (steps of all episodes, A) float32: with the seeds, it replays every rollout
SAME_PIXELS = (
    "simulator",
    "embodiment",
    "cameras",
    "shadows",
    "reflections",
    "antialiasing",
    "show_goal_sites",
)


def evaluate(
    spec: EvaluateStage, export: ExportRef, preprocessed: PreprocessedRef, *, out: Attempt, runtime: Runtime
) -> EvalReport:
    """Evaluate `export` by the suite of `spec`; `preprocessed` says what world and data it was trained on.

    Writes report.json, actions.npy and films. Raises UserError EVAL-001 when the suite shows the policy
    another picture than it was trained on, EVAL-002 when it evaluates on seeds that it was trained on,
    EVAL-003 when the suite is empty; Transient when workers keep dying.
    """
    card = json.loads((runtime.path(preprocessed.uri) / "card.json").read_text())
    if spec.evaluate.scene is None:
        return evaluate_offline(spec.evaluate, export, preprocessed, out=out, runtime=runtime)
    check_suite(spec.evaluate, card["meaning"])
    return _closed_loop(spec.evaluate, spec.evaluate.scene, export, out, runtime)


def check_suite(spec: EvaluateSpec, meaning: dict[str, Any]) -> None:
    """Compare the suite with what the data says of itself; data from elsewhere may say nothing of scene or seeds."""
    if not spec.tasks or spec.episodes_per_task < 1:
        raise UserError("EVAL-003", f"suite {spec.suite!r} has no episodes", next_step="set evaluate.episodes_per_task")
    trained = meaning.get("scene")
    if trained is not None and spec.scene is not None:
        shown = json.loads(json.dumps(dataclasses.asdict(spec.scene)))
        different = [name for name in SAME_PIXELS if shown[name] != trained[name]]
        if different:
            raise UserError(
                "EVAL-001",
                "the suite's scene shows the policy something else than the demonstrations did",
                where="; ".join(f"{name}: {trained[name]} -> {shown[name]}" for name in different),
                next_step="use one scene for `collect.scene` and `evaluate.scene`, or collect again",
            )
    seen = {seed for seeds in (meaning.get("seeds") or {}).values() for seed in seeds}
    if both := sorted(seen & set(seeds_of(spec))):
        raise UserError(
            "EVAL-002",
            f"{len(both)} evaluation seeds were demonstrated (first: {both[0]}); success would prove nothing",
            next_step=f"set evaluate.first_seed beyond {max(seen)}",
        )


def _closed_loop(spec: EvaluateSpec, scene: SceneSpec, export: ExportRef, out: Attempt, runtime: Runtime) -> EvalReport:
    settings = {
        "evaluate": dataclasses.asdict(spec),
        "export": str(runtime.local(export.uri)) if spec.actor == "export" else None,
    }
    blocks = _Blocks(spec, out.path / BLOCKS)
    blocks.adopt([attempt / BLOCKS for attempt in out.earlier])
    with Crew(WORKER, settings, size=runtime.workers, logs=out.path / BLOCKS / "logs") as crew:
        for unit, result in crew.run(blocks.pick):
            out.check()
            blocks.finish(unit, result)
            runtime.report(blocks.progress())
        episodes = merged(spec, [(unit["task"], result["episodes"]) for unit, result in blocks.finished])
        _film(crew, episodes, spec, out, runtime)
    control_hz = find_embodiment(scene.embodiment).control_hz
    results = task_results(spec, episodes, control_hz)
    actions = [np.array(episode.pop("executed"), np.float32) for episode in episodes]
    np.save(out.path / ACTIONS, np.concatenate(actions))
    simulator = blocks.simulator()
    report = _report(spec, episodes, results, simulator, control_hz)
    (out.path / REPORT).write_text(json.dumps(report, indent=1))
    shutil.rmtree(out.path / BLOCKS)
    runtime.report(_summary(results, report))
    versions = simulator["versions"]
    label = f"{simulator['simulator']} {versions[simulator['simulator']]}"
    return EvalReport(
        uri=out.uri,
        fingerprint=out.fingerprint,
        suite=spec.suite,
        simulator=f"{label} · {report['simulator_digest']}",
        num_episodes=len(episodes),
        score=report["score"],
        tasks=results,
        collisions=report["safety"]["collisions"]["episodes"],
        limit_hits=report["safety"]["limit_hits"]["episodes"],
        non_finite=report["safety"]["non_finite"]["episodes"],
        error=None,
        baselines=(),
    )


class _Blocks:
    """Which block of which task comes next, and the results of those that are done."""

    def __init__(self, spec: EvaluateSpec, folder: Path) -> None:
        self._folder = folder
        self._spec = spec
        self._seeds = list(seeds_of(spec))
        starts = range(0, len(self._seeds), spec.block_size)
        self._waiting: list[Unit] = [
            {"task": task, "block": block, "seeds": self._seeds[start : start + spec.block_size]}
            for task in range(len(spec.tasks))
            for block, start in enumerate(starts)
        ]
        self._busy: Counter[int] = Counter()
        self.finished: list[tuple[Unit, dict[str, Any]]] = []

    def adopt(self, earlier: list[Path]) -> None:
        """Take over the blocks that earlier attempts finished, newest first."""
        for unit in list(self._waiting):
            paths = [folder / _name(unit) for folder in earlier if (folder / _name(unit)).exists()]
            told = [json.loads(path.read_text()) for path in paths]
            if usable := [result for result in told if is_installed(result["simulator"])]:
                self._waiting.remove(unit)
                self.finished.append((unit, usable[0]))

    def pick(self, last: Unit | None) -> Unit | None:
        """A block of the task that this worker has open, else of the one with the fewest workers on it."""
        if not self._waiting:
            return None
        known = last["task"] if last is not None else None
        unit = min(self._waiting, key=lambda unit: (unit["task"] != known, self._busy[unit["task"]]))
        self._waiting.remove(unit)
        self._busy[unit["task"]] += 1
        return unit

    def finish(self, unit: Unit, result: dict[str, Any]) -> None:
        self._busy[unit["task"]] -= 1
        self.finished.append((unit, result))
        staged = self._folder / f"{_name(unit)}.tmp"
        staged.write_text(json.dumps(result))
        os.replace(staged, self._folder / _name(unit))

    def progress(self) -> Progress:
        episodes = [episode for _, result in self.finished for episode in result["episodes"]]
        return Progress(
            done=len(episodes),
            total=len(self._seeds) * len(self._spec.tasks),
            unit="episodes",
            figures={"success": sum(episode["success"] for episode in episodes) / max(1, len(episodes))},
        )

    def simulator(self) -> dict[str, Any]:
        """The one fingerprint that all blocks ran under. Raises RuntimeError when workers disagree."""
        told = [result["simulator"] for _, result in self.finished]
        assets = {task: name for each in told for task, name in each["assets"].items()}
        alike = {json.dumps({**each, "assets": {}}, sort_keys=True) for each in told}
        if len(alike) != 1 or any(assets[task] != name for each in told for task, name in each["assets"].items()):
            raise RuntimeError("blocks were simulated by simulators with different fingerprints")
        return {**told[0], "assets": dict(sorted(assets.items()))}


def _name(unit: Unit) -> str:
    return f"{unit['task']}-{unit['block']}.json"


def _film(crew: Crew, episodes: list[EpisodeResult], spec: EvaluateSpec, out: Attempt, runtime: Runtime) -> None:
    """Replay and film the chosen episodes; each gets its film's path relative to the report."""
    chosen = to_film(episodes, spec.num_videos)
    waiting: list[Unit] = []
    (out.path / "videos").mkdir(exist_ok=True)
    for index, episode in enumerate(chosen):
        kind = "success" if episode["success"] else "failure"
        episode["video"] = f"videos/{kind}-{episode['task']}-{episode['task_index']}-{episode['seed']}.mp4"
        path = str(out.path / episode["video"])
        told = {"task": episode["task_index"], "seed": episode["seed"], "actions": episode["executed"]}
        waiting.append({**told, "film": path, "index": index})
    for unit, result in crew.run(lambda _last: waiting.pop(0) if waiting else None):
        out.check()
        episode = chosen[unit["index"]]
        if (result["success"], result["steps"]) != (episode["success"], episode["steps"]):
            runtime.report(Note(text=f"{episode['video']}: the replay of seed {episode['seed']} went another way"))
            episode["replay_differs"] = True


def _report(
    spec: EvaluateSpec,
    episodes: list[EpisodeResult],
    results: tuple[TaskResult, ...],
    simulator: dict[str, Any],
    control_hz: float,
) -> dict[str, Any]:
    """report.json: outcomes, protocol, simulator. Paths are relative to the report."""
    first = np.cumsum([0, *(episode["steps"] for episode in episodes)])
    for episode, start in zip(episodes, first[:-1], strict=True):
        episode |= {"seconds": episode["steps"] / control_hz, "first_step": int(start)}
    k = sum(result.k for result in results)
    low, high = wilson(k, len(episodes))
    protocol = dataclasses.asdict(spec)
    for label in ("num_videos",):
        protocol.pop(label)
    return {
        "kind": "closed_loop",
        "suite": spec.suite,
        "actor": spec.actor,
        "score": k / len(episodes),
        "interval": [low, high],
        "tasks": [
            {**dataclasses.asdict(result), "instruction": task.instruction, "other_goal": _other_goals(episodes, index)}
            for index, (result, task) in enumerate(zip(results, spec.tasks, strict=True))
        ],
        "safety": safety(episodes),
        "mean_seconds": sum(episode["seconds"] for episode in episodes) / len(episodes),
        "protocol": {**protocol, "control_hz": control_hz, "seeds": [spec.first_seed, spec.episodes_per_task]},
        "simulator": simulator,
        "simulator_digest": digest(simulator)[:8],
        "episodes": episodes,
        "videos": [episode["video"] for episode in to_film(episodes, spec.num_videos)],
    }


def _other_goals(episodes: list[EpisodeResult], task: int) -> int | None:
    """In how many episodes of the task the opposite goal was reached; None where it has none."""
    reached = [episode["other_goal"] for episode in episodes if episode["task_index"] == task]
    return None if None in reached else sum(reached)


def _summary(results: tuple[TaskResult, ...], report: dict[str, Any]) -> Summary:
    low, high = report["interval"]
    k, n = sum(result.k for result in results), sum(result.n for result in results)
    events = report["safety"]
    line = f"{k}/{n} succeeded ({100 * low:.0f}–{100 * high:.0f} %) · {events['collisions']['episodes']} with collision"
    table = [
        {
            "task": result.task,
            "success": f"{result.k}/{result.n} ({100 * result.low:.0f}–{100 * result.high:.0f})",
            "safe success": f"{result.safe}/{result.n}",
            "mean s/episode": round(result.seconds, 1),
        }
        for result in results
    ]
    return Summary(line=line, table=table)
