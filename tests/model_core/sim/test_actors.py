"""Chance, experts with noise, and recordings."""

from dataclasses import replace

import numpy as np

from model_core.sim.actors import NoisyExpert, RandomActor, ReplayActor, chunk_noise
from model_core.sim.rollout import Moment, rollout
from model_core.sim.simulator import State
from tests.model_core.sim.worlds import COLLECT, Countdown

LABEL = np.array([0.2, -0.4, 0.0, 0.7], np.float32)


def moment(num_lanes: int = 1, chunk: int = 0) -> Moment:
    state = State(proprio=np.zeros(4, np.float32), privileged=np.zeros(39))
    return Moment(observations=[], states=[state] * num_lanes, chunk=chunk)


def executed(seed: int, num_steps: int, **changes: float) -> np.ndarray:
    """What a noisy expert does (T, A) that would always do LABEL."""
    actor = NoisyExpert(lambda _: LABEL, replace(COLLECT, **changes))
    actor.reset([seed])
    plans = [actor.act(moment()) for _ in range(num_steps)]
    assert all(np.array_equal(plan.labels_LKA[0, 0], LABEL) for plan in plans)
    return np.array([plan.executed_LKA[0, 0] for plan in plans])


def test_chunk_noise_is_of_seed_episode_and_chunk() -> None:
    first = chunk_noise(0, 100_000, 3, 16, 4)
    assert first.shape == (16, 4)
    assert first.dtype == np.float32
    assert np.array_equal(first, chunk_noise(0, 100_000, 3, 16, 4))
    others = [chunk_noise(1, 100_000, 3, 16, 4), chunk_noise(0, 100_001, 3, 16, 4), chunk_noise(0, 100_000, 4, 16, 4)]
    assert all(not np.array_equal(first, other) for other in others)


def test_an_expert_without_noise_does_what_it_says() -> None:
    actions = executed(5, 20, held_noise=0.0, white_noise=0.0, max_random_start=0)
    assert np.allclose(actions, LABEL)


def test_held_noise_stays_for_its_steps() -> None:
    actions = executed(2, 60, held_noise=0.3, white_noise=0.0, max_random_start=0)
    blocks = actions.reshape(10, 6, 4)
    assert np.array_equal(blocks, np.repeat(blocks[:, :1], 6, axis=1))
    held = ~np.isclose(blocks[:, 0, 0], LABEL[0])
    assert 0 < held.sum() < 10


def test_noise_spares_the_gripper_and_keeps_the_limits() -> None:
    actions = executed(3, 200, held_noise=2.0, white_noise=2.0)
    assert np.allclose(actions[:, 3], LABEL[3])
    assert np.abs(actions).max() == 1.0


def test_the_start_is_random_for_at_most_so_many_steps() -> None:
    quiet = {"held_noise": 0.0, "white_noise": 0.0, "max_random_start": 8}
    starts = [int((~np.isclose(executed(seed, 12, **quiet)[:, 0], LABEL[0])).sum()) for seed in range(40)]
    assert min(starts) == 0
    assert max(starts) == 8


def test_an_expert_depends_on_its_seed_alone() -> None:
    assert np.array_equal(executed(7, 30), executed(7, 30))
    assert not np.array_equal(executed(7, 30), executed(8, 30))


def test_chance_is_uniform_and_repeats() -> None:
    actor = RandomActor(action_dim=4, execution_horizon=500, seed=0)
    actor.reset([1, 2])
    actions = actor.act(moment()).executed_LKA
    assert actions.shape == (2, 500, 4)
    assert -1 <= actions.min() < -0.99
    assert abs(actions.mean()) < 0.05
    assert np.array_equal(actions, actor.act(moment()).executed_LKA)
    assert not np.array_equal(actions, actor.act(moment(chunk=1)).executed_LKA)


def test_a_recording_plays_again() -> None:
    actions = np.array([[[1.0, 0.5], [-1.0, 0.0], [1.0, 0.0]]], np.float32)
    (outcome,) = rollout(
        Countdown(), ReplayActor(actions), task="t", instruction="", seeds=[2], block_size=1, max_steps=3
    )
    assert (outcome.success, outcome.steps) == (True, 3)
    assert np.array_equal(outcome.executed, actions[0])
