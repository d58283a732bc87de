"""Simulated worlds: one protocol, one rollout. Names to simulators and to the scripted experts they have."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from lookup import lookup
from model_core.specs import SceneSpec

if TYPE_CHECKING:
    import numpy as np

    from model_core.sim.simulator import Simulator

SIMULATORS = {"metaworld": "model_core.sim.metaworld:MetaWorld"}
EXPERTS = {"metaworld": "model_core.sim.experts:metaworld_expert"}


def open_simulator(scene: SceneSpec) -> "Simulator":
    """A simulator for `scene`, to be closed by the caller. Off-screen and in one thread unless told otherwise.

    Raises UserError NAME-001 for an unknown simulator and SIM-001 where this machine cannot render.
    """
    os.environ.setdefault("MUJOCO_GL", "egl")  # read when mujoco is imported
    os.environ.setdefault("LP_NUM_THREADS", "0")  # draw in the calling thread: workers share the cores
    return lookup(SIMULATORS, scene.simulator, "simulator")(scene)


def open_expert(simulator: str, task: str) -> Callable[["np.ndarray"], "np.ndarray"]:
    """The scripted expert of `task`: from privileged state to a clean action (A,)."""
    return lookup(EXPERTS, simulator, "simulator with experts")(task)
