"""A fake simulator whose outcomes are known, and the scene that the tests render."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from model_core.sim.simulator import Events, State
from model_core.specs import CameraSpec, CollectSpec, SceneSpec, TaskSpec

TOP = CameraSpec(view="top", camera="topview", height=128, width=128, crop=(4, 32, 64, 64))
CORNER = CameraSpec(view="corner", camera="corner4", height=64, width=64, flip="vertical")
SCENE = SceneSpec(
    simulator="metaworld",
    embodiment="metaworld_sawyer",
    cameras=(TOP, CORNER),
    shadows=False,
    reflections=False,
    antialiasing=0,
    show_goal_sites=False,
    render_every=4,
    max_steps=200,
)
TASKS = (
    TaskSpec(name="button-press-topdown-v3", instruction="press the button from the top"),
    TaskSpec(name="faucet-open-v3", instruction="turn the faucet counterclockwise"),
)
COLLECT = CollectSpec(
    scene=SCENE,
    tasks=TASKS,
    episodes_per_task=2,
    first_seed=0,
    held_noise=0.3,
    hold_steps=6,
    white_noise=0.15,
    max_random_start=8,
)


class Countdown:
    """Each lane has `seed` steps to go; an action above 0 in its first component takes one off.

    An action below -1 counts as a limit hit, a negative one as a collision. Images show the steps to go.
    """

    control_hz = 10.0
    action_dim = 2

    def __init__(self) -> None:
        self.left: list[int] = []
        self.num_rendered = 0

    def reset(self, task: str, seeds: Sequence[int]) -> list[State]:
        self.left = list(seeds)
        return [self._state(lane, Events()) for lane in range(len(seeds))]

    def step(self, actions_LA: np.ndarray, active: Sequence[bool]) -> list[State]:
        states = []
        for lane, action in enumerate(actions_LA):
            self.left[lane] -= int(active[lane] and action[0] > 0)
            states.append(self._state(lane, Events(collision=bool(action[0] < 0), limit_hit=bool(action[0] < -1))))
        return states

    def render(self, lanes: Sequence[int]) -> list[dict[str, np.ndarray]]:
        self.num_rendered += len(lanes)
        return [{"top": np.full((2, 2, 3), self.left[lane], np.uint8)} for lane in lanes]

    def fingerprint(self) -> dict[str, Any]:
        return {"simulator": "countdown"}

    def close(self) -> None:
        """Nothing to free."""

    def _state(self, lane: int, events: Events) -> State:
        left = self.left[lane]
        return State(
            proprio=np.array([left], np.float32),
            privileged=np.array([float(left)]),
            success=left <= 0,
            other_goal=left == 1,
            events=events,
        )
