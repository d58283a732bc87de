"""Blocks of episodes with known outcomes: padding, counting, recording, independence of block mates."""

from collections.abc import Sequence

import numpy as np
import pytest

from model_core.sim.actors import PolicyActor
from model_core.sim.rollout import Frame, Moment, Outcome, Plan, rollout
from model_core.types import Observation
from tests.model_core.sim.worlds import Countdown


class Constant:
    """Always the same actions; remembers what it was shown."""

    def __init__(self, first: float, *, num_actions: int = 3, needs_views: bool = False) -> None:
        self.needs_views = needs_views
        self.seen: list[Moment] = []
        self.first = first
        self.num_actions = num_actions

    def reset(self, seeds: Sequence[int]) -> None:
        self.seeds = list(seeds)

    def act(self, moment: Moment) -> Plan:
        self.seen.append(moment)
        actions = np.zeros((len(self.seeds), self.num_actions, 2), np.float32)
        actions[..., 0] = self.first
        return Plan(executed_LKA=actions, labels_LKA=actions + 1)


def run(actor: object, seeds: Sequence[int], *, size: int = 4, max_steps: int = 10, **extra: object) -> list[Outcome]:
    return rollout(
        Countdown(), actor, task="t", instruction="go", seeds=seeds, block_size=size, max_steps=max_steps, **extra
    )


def test_an_episode_ends_at_success_or_at_the_last_step() -> None:
    outcomes = run(Constant(1.0), [2, 5, 20])
    assert [(o.seed, o.success, o.steps) for o in outcomes] == [(2, True, 2), (5, True, 5), (20, False, 10)]
    assert [o.executed.shape for o in outcomes] == [(2, 2), (5, 2), (10, 2)]


def test_events_are_counted_and_make_an_episode_unsafe() -> None:
    (outcome,) = run(Constant(-2.0), [3], max_steps=7)
    assert (outcome.success, outcome.collisions, outcome.limit_hits, outcome.non_finite) == (False, 7, 7, 0)
    assert not outcome.safe
    assert run(Constant(1.0), [3])[0].safe


def test_the_other_goal_counts_once_it_was_reached() -> None:
    assert [o.other_goal for o in run(Constant(1.0), [3, 30])] == [True, False]


def test_blocks_keep_their_shape() -> None:
    actor = Constant(1.0, needs_views=True)
    run(actor, [1, 4])
    assert actor.seeds == [1, 4, 1, 1]
    assert [len(moment.observations) for moment in actor.seen] == [4, 4]
    assert actor.seen[1].observations[0].views["top"].max() == 1  # the last that was rendered while it ran
    assert actor.seen[1].observations[1].views["top"].max() == 1
    assert actor.seen[0].observations[0].instruction == "go"


def test_only_what_is_needed_is_rendered() -> None:
    world = Countdown()
    rollout(world, Constant(1.0), task="t", instruction="", seeds=[5], block_size=1, max_steps=9)
    assert world.num_rendered == 0
    frames: list[Frame] = []
    looking = Constant(1.0, num_actions=2, needs_views=True)
    rollout(
        world, looking, task="t", instruction="", seeds=[5], block_size=1, max_steps=9, render_every=4,
        recorder=frames.append,
    )  # fmt: skip
    assert world.num_rendered == 3  # the actor looks at steps 0, 2, 4; the recorder at 0 and 4 sees the same pictures
    assert [frame.views is not None for frame in frames] == [True, False, False, False, True]


def test_frames_tell_what_was_seen_done_and_reached() -> None:
    frames: list[Frame] = []
    run(Constant(1.0), [2, 1], recorder=frames.append)
    assert [(f.lane, f.step, f.proprio[0], f.success) for f in frames] == [
        (0, 0, 2.0, False), (1, 0, 1.0, True), (0, 1, 1.0, True),
    ]  # fmt: skip
    assert frames[0].label[0] == 2.0
    assert frames[0].executed[0] == 1.0
    assert frames[2].views is not None
    assert frames[2].views["top"].max() == 1


class FromNoise:
    """A policy whose action is its noise, so that outcomes depend on nothing else."""

    action_shape = (4, 2)

    def act(self, observations: list[Observation], noise_BHA: np.ndarray, denoise_steps: int) -> np.ndarray:
        assert len(observations) == len(noise_BHA)
        return noise_BHA


@pytest.mark.parametrize("partition", [[[3, 4, 5, 6]], [[3], [4], [5], [6]], [[6, 4], [5, 3]]])
@pytest.mark.parametrize("size", [4, 7])
def test_an_outcome_does_not_depend_on_block_mates(partition: list[list[int]], size: int) -> None:
    def outcomes(blocks: list[list[int]], size: int) -> dict[int, list[float]]:
        actor = PolicyActor(FromNoise(), execution_horizon=3, denoise_steps=1, seed=9)
        return {o.seed: o.executed.tolist() for seeds in blocks for o in run(actor, seeds, size=size, max_steps=30)}

    assert outcomes(partition, size) == outcomes([[3, 4, 5, 6]], 4)
