"""The one place where actors meet simulators: a block of episodes, one inference call per chunk.

A block always has the same shape and an episode always the same lane in it, and noise comes from (seed,
episode seed, chunk), so an outcome depends neither on its block mates nor on the number of workers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from model_core.sim.simulator import Simulator, State
from model_core.types import Observation


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """K actions for each lane: what is executed, and what an expert would have done (the same for a policy)."""

    executed_LKA: np.ndarray
    labels_LKA: np.ndarray


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """What an actor decides on, lane by lane: only experts read `states`; `chunk` counts decisions."""

    observations: Sequence[Observation]
    states: Sequence[State]
    chunk: int


class Actor(Protocol):
    """Whoever decides. needs_views: whether observations must carry images."""

    needs_views: bool

    def reset(self, seeds: Sequence[int]) -> None:
        """A new block begins; `seeds` of its episodes, padded ones repeated."""
        ...

    def act(self, moment: Moment) -> Plan:
        """Actions of every lane for the steps until the next call."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """One control step of one episode: what was seen, what was done, and whether the goal held afterwards.

    views is None between rendered frames.
    """

    lane: int
    step: int
    proprio: np.ndarray
    views: dict[str, np.ndarray] | None
    label: np.ndarray
    executed: np.ndarray
    success: bool


T = TypeVar("T")
Recorder = Callable[[Frame], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One episode. Events are counted in steps; other_goal: whether it was ever reached (None: undefined).

    executed (T, A) float32 as the actor gave it: with the seed, it replays the episode.
    """

    seed: int
    success: bool
    steps: int
    collisions: int
    limit_hits: int
    non_finite: int
    other_goal: bool | None
    executed: np.ndarray

    @property
    def safe(self) -> bool:
        """Success without a collision or a refused action."""
        return self.success and not self.collisions and not self.non_finite


@dataclass(slots=True)
class _Episode:
    seed: int
    states: list[State]
    actions: list[np.ndarray]

    @property
    def running(self) -> bool:
        return not self.states[-1].success

    def outcome(self) -> Outcome:
        events = [state.events for state in self.states]
        goals = [state.other_goal for state in self.states if state.other_goal is not None]
        return Outcome(
            seed=self.seed,
            success=self.states[-1].success,
            steps=len(self.actions),
            collisions=sum(event.collision for event in events),
            limit_hits=sum(event.limit_hit for event in events),
            non_finite=sum(event.non_finite for event in events),
            other_goal=any(goals) if goals else None,
            executed=np.array(self.actions, np.float32),
        )


class _Block:
    """The lanes of a rollout and the images of the current step, rendered at most once."""

    def __init__(self, simulator: Simulator, task: str, seeds: Sequence[int], size: int) -> None:
        self._simulator = simulator
        first = simulator.reset(task, seeds)
        self.episodes = [_Episode(seed, [state], []) for seed, state in zip(seeds, first, strict=True)]
        self._padding = size - len(seeds)
        self._views: list[dict[str, np.ndarray]] = [{} for _ in seeds]
        self._fresh = [False] * len(seeds)

    @property
    def running(self) -> list[bool]:
        return [episode.running for episode in self.episodes]

    def views(self) -> list[dict[str, np.ndarray]]:
        """Images of every lane; those of a finished one are its last."""
        stale = [lane for lane, running in enumerate(self.running) if running and not self._fresh[lane]]
        for lane, views in zip(stale, self._simulator.render(stale), strict=True):
            self._views[lane], self._fresh[lane] = views, True
        return self._views

    def states(self) -> list[State]:
        return self._padded([episode.states[-1] for episode in self.episodes])

    def observations(self, instruction: str, *, with_views: bool) -> list[Observation]:
        views = self.views() if with_views else self._views
        return self._padded(
            [
                Observation(views=shown, proprio=episode.states[-1].proprio, instruction=instruction)
                for shown, episode in zip(views, self.episodes, strict=True)
            ]
        )

    def advance(self, actions_LA: np.ndarray) -> None:
        running = self.running
        states = self._simulator.step(actions_LA[: len(running)], running)
        for lane, episode in enumerate(self.episodes):
            if running[lane]:
                episode.actions.append(np.array(actions_LA[lane], np.float32))
                episode.states.append(states[lane])
                self._fresh[lane] = False

    def _padded(self, lanes: list[T]) -> list[T]:
        return lanes + lanes[:1] * self._padding


def rollout(
    simulator: Simulator,
    actor: Actor,
    *,
    task: str,
    instruction: str,
    seeds: Sequence[int],
    block_size: int,
    max_steps: int,
    render_every: int = 1,
    recorder: Recorder | None = None,
) -> list[Outcome]:
    """Run one episode per seed (at most block_size) until success or max_steps; outcomes in order of seeds.

    `recorder` gets every frame of every lane as it happens, with images at each `render_every`-th step.
    """
    block = _Block(simulator, task, seeds, block_size)
    actor.reset([*seeds, *[seeds[0]] * (block_size - len(seeds))])
    step = chunk = 0
    while step < max_steps and any(block.running):
        observations = block.observations(instruction, with_views=actor.needs_views)
        plan = actor.act(Moment(observations=observations, states=block.states(), chunk=chunk))
        for offset in range(plan.executed_LKA.shape[1]):
            if step == max_steps or not any(block.running):
                break
            _advance(block, plan, offset, step, render_every, recorder)
            step += 1
        chunk += 1
    return [episode.outcome() for episode in block.episodes]


def _advance(block: _Block, plan: Plan, offset: int, step: int, render_every: int, recorder: Recorder | None) -> None:
    """One control step of all running lanes, told to the recorder once the outcome is known."""
    running, before = block.running, block.states()
    shown = block.views() if recorder is not None and step % render_every == 0 else None
    views = list(shown) if shown is not None else None
    block.advance(plan.executed_LKA[:, offset])
    if recorder is None:
        return
    for lane in np.flatnonzero(running):
        recorder(
            Frame(
                lane=int(lane),
                step=step,
                proprio=before[lane].proprio,
                views=views[lane] if views is not None else None,
                label=plan.labels_LKA[lane, offset],
                executed=plan.executed_LKA[lane, offset],
                success=block.episodes[lane].states[-1].success,
            )
        )
