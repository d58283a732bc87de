"""Scripted experts give clean actions within the limits."""

import numpy as np

from model_core.sim import open_expert, open_simulator
from tests.model_core.sim.worlds import SCENE


def test_an_expert_is_a_function_of_the_state() -> None:
    world = open_simulator(SCENE)
    state = world.reset("button-press-topdown-v3", [2])[0]
    expert = open_expert("metaworld", "button-press-topdown-v3")
    action = expert(state.privileged)
    assert (action.shape, action.dtype) == ((4,), np.float32)
    assert np.abs(action).max() <= 1
    assert np.array_equal(action, open_expert("metaworld", "button-press-topdown-v3")(state.privileged))
    world.close()
