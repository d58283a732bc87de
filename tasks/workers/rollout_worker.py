"""Runs blocks of evaluation episodes, and plays chosen ones again for the camera."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from model_core.sim import open_simulator
from model_core.sim.actors import PolicyActor, RandomActor, ReplayActor
from model_core.sim.rollout import Actor, Frame, Outcome, rollout
from model_core.sim.simulator import Simulator
from model_core.specs import EvaluateSpec, SceneSpec
from tasks.recorder import write_watchable
from tasks.workers.wire import Work, serve, spec_from_json

FILM_PIXELS = 256  # height of a view in a film
LAST_LOOK_S = 0.5  # how long a film rests on the last picture


def begin(settings: dict[str, Any]) -> Work:
    """settings: `evaluate` (an EvaluateSpec as JSON) and `export` (folder of the policy, None for chance).

    A unit is a block (`task`, `seeds`) or a film (`task`, `seed`, `actions`, `film`: path).
    """
    spec = spec_from_json(EvaluateSpec, settings["evaluate"])
    if spec.scene is None:
        raise ValueError("a suite without a scene has no rollouts")
    scene = spec.scene
    simulator = open_simulator(scene)
    actor = _actor(spec, simulator, settings["export"])
    studio: list[Simulator] = []

    def work(unit: dict[str, Any]) -> dict[str, Any]:
        if "film" in unit:
            if not studio:
                studio.append(open_simulator(_large(scene)))
            return _film(studio[0], spec, scene, unit)
        task = spec.tasks[unit["task"]]
        outcomes = rollout(
            simulator,
            actor,
            task=task.name,
            instruction=task.instruction,
            seeds=unit["seeds"],
            block_size=spec.block_size,
            max_steps=scene.max_steps,
        )
        return {"episodes": [_told(outcome) for outcome in outcomes], "simulator": simulator.fingerprint()}

    return work


def _actor(spec: EvaluateSpec, simulator: Simulator, export: str | None) -> Actor:
    if export is None:
        return RandomActor(action_dim=simulator.action_dim, execution_horizon=spec.execution_horizon, seed=spec.seed)
    from model_core.policies.policy import Policy  # torch: chance needs none

    return PolicyActor(
        Policy.load(Path(export)),
        execution_horizon=spec.execution_horizon,
        denoise_steps=spec.denoise_steps,
        seed=spec.seed,
    )


def _told(outcome: Outcome) -> dict[str, Any]:
    return {
        "seed": outcome.seed,
        "success": outcome.success,
        "safe": outcome.safe,
        "steps": outcome.steps,
        "collisions": outcome.collisions,
        "limit_hits": outcome.limit_hits,
        "non_finite": outcome.non_finite,
        "other_goal": outcome.other_goal,
        "executed": outcome.executed.tolist(),
    }


def _large(scene: SceneSpec) -> SceneSpec:
    """The same scene with more pixels, same framing."""
    cameras = []
    for camera in scene.cameras:
        shown = camera.crop[2] if camera.crop else camera.height
        times = max(1, FILM_PIXELS // shown)
        crop = None
        if camera.crop:
            top, left, height, width = (times * edge for edge in camera.crop)
            crop = (top, left, height, width)
        cameras.append(replace(camera, height=times * camera.height, width=times * camera.width, crop=crop))
    return replace(scene, cameras=tuple(cameras))


def _film(simulator: Simulator, spec: EvaluateSpec, scene: SceneSpec, unit: dict[str, Any]) -> dict[str, Any]:
    """Replay the recorded actions, views side by side; tells whether the outcome was the same."""
    task = spec.tasks[unit["task"]]
    pictures: list[np.ndarray] = []

    def record(frame: Frame) -> None:
        if frame.views is not None:
            pictures.append(_side_by_side(frame.views))

    outcome = rollout(
        simulator,
        ReplayActor(np.array([unit["actions"]], np.float32)),
        task=task.name,
        instruction=task.instruction,
        seeds=[unit["seed"]],
        block_size=1,
        max_steps=len(unit["actions"]),
        render_every=scene.render_every,
        recorder=record,
    )[0]
    rate = simulator.control_hz / scene.render_every
    pictures += [_side_by_side(simulator.render([0])[0])] * max(1, round(rate * LAST_LOOK_S))
    write_watchable(Path(unit["film"]), pictures, rate)
    return {"success": outcome.success, "steps": outcome.steps}


def _side_by_side(views: dict[str, np.ndarray]) -> np.ndarray:
    """Views in a row, cut to the lowest and to even sizes as yuv420p wants."""
    height = min(view.shape[0] for view in views.values()) // 2 * 2
    row = np.concatenate([view[:height] for view in views.values()], axis=1)
    return row[:, : row.shape[1] // 2 * 2]


if __name__ == "__main__":
    serve(begin)
