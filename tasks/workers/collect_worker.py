"""Runs one demonstration per unit and leaves it, complete or not at all, in a folder of its own."""

from pathlib import Path
from typing import Any

from model_core.sim import open_expert, open_simulator
from model_core.sim.actors import NoisyExpert
from model_core.sim.rollout import rollout
from model_core.specs import CollectSpec
from tasks.recorder import EpisodeWriter
from tasks.workers.wire import Work, serve, spec_from_json


def begin(settings: dict[str, Any]) -> Work:
    """settings: `collect` (a CollectSpec as JSON). A unit has `task` (index), `seed`, `views` and `folder`."""
    spec = spec_from_json(CollectSpec, settings["collect"])
    simulator = open_simulator(spec.scene)

    def work(unit: dict[str, Any]) -> dict[str, Any]:
        task = spec.tasks[unit["task"]]
        writer = EpisodeWriter(Path(unit["folder"]), views=unit["views"], fps=simulator.control_hz)
        outcome = rollout(
            simulator,
            NoisyExpert(open_expert(spec.scene.simulator, task.name), spec),
            task=task.name,
            instruction=task.instruction,
            seeds=[unit["seed"]],
            block_size=1,
            max_steps=spec.scene.max_steps,
            render_every=spec.scene.render_every,
            recorder=writer.add,
        )[0]
        told = {"seed": outcome.seed, "success": outcome.success, "steps": outcome.steps}
        simulated = simulator.fingerprint()
        own = {name: digest for name, digest in simulated["assets"].items() if name == task.name}
        writer.finish({**told, "simulator": {**simulated, "assets": own}})
        return told

    return work


if __name__ == "__main__":
    serve(begin)
