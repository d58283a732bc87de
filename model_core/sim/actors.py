"""Those who act in a rollout: a policy, a noisy scripted expert, chance, and a recording played again."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from model_core.sim.rollout import Moment, Plan
from model_core.specs import CollectSpec
from model_core.types import Observation

EXPERT_STREAM = 1  # keeps an expert's noise apart from any other use of an episode's seed
GRIPPER = -1  # last action component: a switch rather than a motion, so it carries no noise


def chunk_noise(seed: int, episode_seed: int, chunk: int, horizon: int, action_dim: int) -> np.ndarray:
    """Initial noise (H, A) float32 of one chunk, the same whoever acts beside it."""
    return np.random.default_rng([seed, episode_seed, chunk]).standard_normal((horizon, action_dim), np.float32)


class ActsInChunks(Protocol):
    """What a rollout asks of a policy: raw actions (B, H, A) from observations and initial noise.

    action_shape: (H, A).
    """

    @property
    def action_shape(self) -> tuple[int, int]: ...

    def act(self, observations: list[Observation], noise_BHA: np.ndarray, denoise_steps: int) -> np.ndarray: ...


class PolicyActor:
    """Executes the first `execution_horizon` actions of each chunk, then looks again."""

    needs_views = True

    def __init__(self, policy: ActsInChunks, *, execution_horizon: int, denoise_steps: int, seed: int) -> None:
        self._policy = policy
        self._execution_horizon = execution_horizon
        self._denoise_steps = denoise_steps
        self._seed = seed
        self._episodes: Sequence[int] = ()

    def reset(self, seeds: Sequence[int]) -> None:
        self._episodes = seeds

    def act(self, moment: Moment) -> Plan:
        shape = self._policy.action_shape
        noise = np.stack([chunk_noise(self._seed, episode, moment.chunk, *shape) for episode in self._episodes])
        actions = self._policy.act(list(moment.observations), noise, self._denoise_steps)[:, : self._execution_horizon]
        return Plan(executed_LKA=actions, labels_LKA=actions)


class RandomActor:
    """Uniform actions: what chance alone achieves."""

    needs_views = False

    def __init__(self, *, action_dim: int, execution_horizon: int, seed: int) -> None:
        self._shape = (execution_horizon, action_dim)
        self._seed = seed
        self._episodes: Sequence[int] = ()

    def reset(self, seeds: Sequence[int]) -> None:
        self._episodes = seeds

    def act(self, moment: Moment) -> Plan:
        sources = [np.random.default_rng([self._seed, seed, moment.chunk]) for seed in self._episodes]
        actions = np.array([source.uniform(-1, 1, self._shape) for source in sources], np.float32)
        return Plan(executed_LKA=actions, labels_LKA=actions)


class ReplayActor:
    """Executes recorded actions (L, T, A): the same seeds give the same episodes."""

    needs_views = False

    def __init__(self, actions_LTA: np.ndarray) -> None:
        self._actions = actions_LTA

    def reset(self, seeds: Sequence[int]) -> None:
        """A recording does not depend on the seed."""

    def act(self, moment: Moment) -> Plan:
        return Plan(executed_LKA=self._actions, labels_LKA=self._actions)


class NoisyExpert:
    """A scripted expert whose executed action is disturbed and whose label stays clean.

    It begins with up to max_random_start random steps, then carries held and white noise (CollectSpec), so
    that labels also show the way back from where a policy may drift to.
    """

    needs_views = False

    def __init__(self, expert: Callable[[np.ndarray], np.ndarray], spec: CollectSpec) -> None:
        self._expert = expert
        self._spec = spec
        self._disturbances: list[_Disturbance] = []

    def reset(self, seeds: Sequence[int]) -> None:
        self._disturbances = [_Disturbance(self._spec, seed) for seed in seeds]

    def act(self, moment: Moment) -> Plan:
        labels = [self._expert(state.privileged) for state in moment.states]
        executed = [each.disturb(label) for each, label in zip(self._disturbances, labels, strict=True)]
        return Plan(executed_LKA=np.array(executed, np.float32)[:, None], labels_LKA=np.array(labels)[:, None])


class _Disturbance:
    """The noise of one episode, step by step."""

    def __init__(self, spec: CollectSpec, seed: int) -> None:
        self._spec = spec
        self._random = np.random.default_rng([seed, EXPERT_STREAM])
        self._start = int(self._random.integers(spec.max_random_start + 1))
        self._step = 0
        self._held = 0.0

    def disturb(self, label_A: np.ndarray) -> np.ndarray:
        """The action to execute (A,) in [-1, 1] instead of `label_A`."""
        motion = self._random.normal(size=label_A.shape) * self._spec.white_noise
        if self._step % self._spec.hold_steps == 0:
            is_held = self._random.random() < 0.5
            self._held = self._random.normal(size=label_A.shape) * self._spec.held_noise * is_held
        executed = label_A + motion + self._held
        if self._step < self._start:
            executed = self._random.uniform(-1.0, 1.0, label_A.shape)
        self._step += 1
        executed[GRIPPER] = label_A[GRIPPER]
        return np.clip(executed, -1.0, 1.0)
