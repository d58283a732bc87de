"""What a simulator is to the rest: lanes of episodes that are reset, stepped and rendered together.

An adapter that lives in this process steps its lanes one after another; one that talks to a worker process
or to a vectorised engine answers a call for all lanes at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

import numpy as np

LIMIT_SLACK = 1e-6  # how far beyond a limit an action component still counts as rounding


@dataclass(frozen=True, kw_only=True, slots=True)
class Events:
    """What went wrong in one control step; `collision`: the robot pressed on what it must not touch."""

    collision: bool = False
    limit_hit: bool = False
    non_finite: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """Where a lane is. proprio (P,) float32 is what a policy may see; privileged (D,) float64 is for experts.

    success: the task's goal holds now. other_goal: the goal opposite to it does; None where none is defined.
    """

    proprio: np.ndarray
    privileged: np.ndarray
    success: bool = False
    other_goal: bool | None = None
    events: Events = Events()


class Simulator(Protocol):
    """One world with its scene. A lane's course depends on its task, seed and actions, never on other lanes."""

    control_hz: float
    action_dim: int

    def reset(self, task: str, seeds: Sequence[int]) -> list[State]:
        """Begin one episode per seed, lane by lane. Raises UserError SIM-002 for an unknown task."""
        ...

    def step(self, actions_LA: np.ndarray, active: Sequence[bool]) -> list[State]:
        """Advance the active lanes by one control step; the others keep their last state."""
        ...

    def render(self, lanes: Sequence[int]) -> list[dict[str, np.ndarray]]:
        """The scene's views of the given lanes, each (height, width, 3) uint8 RGB, upright."""
        ...

    def fingerprint(self) -> dict[str, Any]:
        """Everything that decides what a lane does and looks like: versions, renderer, physics, assets. JSON."""
        ...

    def close(self) -> None:
        """Free the renderer and the worker, if there is one."""
        ...


def is_installed(fingerprint: Mapping[str, Any]) -> bool:
    """Whether what ran under `fingerprint` is what would run here: the same versions of all packages it names."""
    try:
        return all(version(name) == told for name, told in fingerprint["versions"].items())
    except PackageNotFoundError:
        return False


def vet(action_A: np.ndarray, low: float, high: float) -> tuple[np.ndarray, bool, bool]:
    """A safe action and whether the given one was beyond a limit or not finite.

    Components beyond [low, high] are clipped; an action that is not finite is refused: no motion at all.
    """
    if not np.isfinite(action_A).all():
        return np.zeros_like(action_A), False, True
    limit_hit = bool((action_A < low - LIMIT_SLACK).any() or (action_A > high + LIMIT_SLACK).any())
    return np.clip(action_A, low, high), limit_hit, False
