"""Demonstrations: scripted experts in a simulator, recorded as a LeRobot v3.0 folder.

The episodes are the first successes in the order of seeds, whoever ran them and however often it stopped.
"""

import dataclasses
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

from data_lake.refs import EpisodesRef
from data_lake.store import Attempt
from data_lake.words import counted
from errors import UserError
from model_core.embodiments import find_embodiment
from model_core.sim.simulator import is_installed
from model_core.specs import CollectSpec
from tasks.lerobot_folder import FolderLayout, write_folder
from tasks.recorder import Episode, read_episode
from tasks.runtime import Progress, Runtime, Summary
from tasks.specs import CollectStage
from tasks.workers.crew import Crew, Unit

WORKER = "tasks.workers.collect_worker"
PIECES = "pieces"  # finished episodes, until they are a folder
MAX_FAILED_SHARE = 0.5
MIN_TRIES = 20


def collect(spec: CollectStage, *, out: Attempt, runtime: Runtime) -> EpisodesRef:
    """Record `spec.collect` under `out`; episodes that an earlier attempt finished are taken over.

    Raises UserError COLLECT-001 when an expert fails more often than not.
    """
    pieces = out.path / PIECES
    plan = _Plan(spec.collect, pieces)
    plan.adopt([attempt / PIECES for attempt in out.earlier])
    begun = time.monotonic()
    settings = {"collect": dataclasses.asdict(spec.collect)}
    with Crew(WORKER, settings, size=runtime.workers, logs=pieces / "logs") as crew:
        for num_run, (unit, result) in enumerate(crew.run(plan.pick), start=1):
            out.check()
            plan.finish(unit, success=result["success"])
            rate = num_run / (time.monotonic() - begun)
            runtime.report(
                Progress(done=plan.num_kept, total=plan.num_wanted, unit="episodes", figures={"episodes/s": rate})
            )
    kept = plan.kept()
    num_frames = write_folder(out.path / "episodes", kept, _layout(spec.collect, kept))
    shutil.rmtree(pieces)
    _summarise(spec.collect, plan, num_frames, runtime)
    return EpisodesRef(
        uri=f"{out.uri}/episodes", fingerprint=out.fingerprint, num_episodes=len(kept), num_frames=num_frames
    )


class _Plan:
    """Which seed of which task comes next. Never more seeds in flight than successes are missing, so that the
    kept episodes are exactly the first successes, in any order of finishing."""

    def __init__(self, spec: CollectSpec, pieces: Path) -> None:
        self._spec = spec
        self._pieces = pieces
        self._next = [spec.first_seed] * len(spec.tasks)
        self._flying: Counter[int] = Counter()
        self._succeeded: list[set[int]] = [set() for _ in spec.tasks]
        self._failed: list[set[int]] = [set() for _ in spec.tasks]
        self._adopted: dict[tuple[int, int], Path] = {}

    @property
    def num_wanted(self) -> int:
        return self._spec.episodes_per_task * len(self._spec.tasks)

    @property
    def num_kept(self) -> int:
        return sum(map(len, self._succeeded))

    def num_tries(self, task: int) -> int:
        return len(self._succeeded[task]) + len(self._failed[task])

    def adopt(self, earlier: list[Path]) -> None:
        """Copy complete episodes of earlier attempts, newest first; `pick` then passes over them."""
        for folder in (folder for pieces in earlier if pieces.exists() for folder in sorted(pieces.iterdir())):
            target = self._pieces / folder.name
            if folder.name == "logs" or target.exists():
                continue
            found = read_episode(folder)
            if found is None or not is_installed(found.simulator):
                continue
            shutil.copytree(folder, target)
            task, seed = map(int, folder.name.split("-"))
            self._adopted[task, seed] = target

    def pick(self, last: Unit | None) -> Unit | None:
        """The next seed, of the task that this worker knows if that still needs some."""
        while (task := self._task(last)) is not None:
            seed, self._next[task] = self._next[task], self._next[task] + 1
            unit = {"task": task, "seed": seed, "views": self._views(seed), "folder": str(self._folder(task, seed))}
            self._flying[task] += 1
            if (task, seed) not in self._adopted:
                return unit
            found = read_episode(self._folder(task, seed))
            self.finish(unit, success=found is not None and found.success)
        return None

    def finish(self, unit: Unit, *, success: bool) -> None:
        task, seed = unit["task"], unit["seed"]
        self._flying[task] -= 1
        (self._succeeded if success else self._failed)[task].add(seed)
        tries, failures = self.num_tries(task), len(self._failed[task])
        if tries >= MIN_TRIES and failures > MAX_FAILED_SHARE * tries:
            name = self._spec.tasks[task].name
            raise UserError(
                "COLLECT-001",
                f"the expert of {name} failed in {failures} of {tries} episodes",
                next_step="lower collect.held_noise and collect.white_noise, raise scene.max_steps, or drop the task",
            )

    def kept(self) -> list[tuple[str, Episode]]:
        """(instruction, episode) by task, then seed."""
        pairs = []
        for task, spec in enumerate(self._spec.tasks):
            for seed in sorted(self._succeeded[task]):
                episode = read_episode(self._folder(task, seed))
                if episode is None:
                    raise RuntimeError(f"episode {spec.name} seed {seed} vanished from {self._pieces}")
                pairs.append((spec.instruction, episode))
        return pairs

    def _task(self, last: Unit | None) -> int | None:
        missing = {
            task: self._spec.episodes_per_task - len(self._succeeded[task]) - self._flying[task]
            for task in range(len(self._spec.tasks))
        }
        if last is not None and missing[last["task"]] > 0:
            return last["task"]
        open_tasks = [task for task, count in missing.items() if count > 0]
        return min(open_tasks, key=lambda task: (self._flying[task], -missing[task]), default=None)

    def _views(self, seed: int) -> list[str]:
        views = [camera.view for camera in self._spec.scene.cameras]
        every = self._spec.one_view_every
        is_single = every > 0 and (seed - self._spec.first_seed) % every == every - 1
        return views[:1] if is_single else views

    def _folder(self, task: int, seed: int) -> Path:
        return self._pieces / f"{task}-{seed}"


def _layout(spec: CollectSpec, kept: list[tuple[str, Episode]]) -> FolderLayout:
    robot = find_embodiment(spec.scene.embodiment)
    seeds: dict[str, list[int]] = {instruction: [] for instruction, _ in kept}
    for instruction, episode in kept:
        seeds[instruction].append(episode.seed)
    return FolderLayout(
        fps=robot.control_hz,
        robot_type=spec.scene.embodiment,
        views=_sizes(spec),
        state_names=robot.state_names,
        action_names=robot.action_names,
        declared={
            "embodiment": spec.scene.embodiment,
            "render_every": spec.scene.render_every,
            "scene": dataclasses.asdict(spec.scene),
            "simulator": _simulator([episode for _, episode in kept]),
            "seeds": seeds,
            "image_orientation": "upright",
            "colour_order": "rgb",
            "action_mode": "absolute",
        },
    )


def _simulator(episodes: list[Episode]) -> dict[str, Any]:
    """The one fingerprint that all episodes were simulated under, with the assets of every task."""
    assets = {task: digest for episode in episodes for task, digest in episode.simulator["assets"].items()}
    return {**episodes[0].simulator, "assets": dict(sorted(assets.items()))}


def _sizes(spec: CollectSpec) -> dict[str, tuple[int, int]]:
    """(height, width) of every view as recorded."""
    shown = {camera.view: camera.crop or (0, 0, camera.height, camera.width) for camera in spec.scene.cameras}
    return {view: (height, width) for view, (_, _, height, width) in shown.items()}


def _summarise(spec: CollectSpec, plan: _Plan, num_frames: int, runtime: Runtime) -> None:
    sizes = _sizes(spec)
    shapes = " · ".join(sorted({f"{height}×{width}" for height, width in sizes.values()}))
    table = [
        {"task": task.name, "instruction": task.instruction, "kept": spec.episodes_per_task, "tried": tried}
        for task, tried in zip(spec.tasks, map(plan.num_tries, range(len(spec.tasks))), strict=True)
    ]
    line = " · ".join(
        (
            counted(plan.num_kept, "episode"),
            counted(len(spec.tasks), "task"),
            f"{counted(len(sizes), 'camera')} {shapes}",
            counted(num_frames, "frame"),
        )
    )
    runtime.report(Summary(line=line, table=table))
