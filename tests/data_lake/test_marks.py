"""Marks: where nothing moves for a second, where the state leaps, and nothing where it only moves."""

import numpy as np
import pytest

from data_lake.marks import Marks, jumps, marks_of, still_segments


def moving(length: int, dims: int = 3) -> np.ndarray:
    """Smooth, each dimension at a pace of its own."""
    time = np.arange(length)[:, None]
    return np.sin(time / (8 + 3 * np.arange(dims))[None, :]).astype(np.float32)


def test_what_moves_has_no_marks() -> None:
    marks = marks_of(moving(200), moving(200), 20.0, 0)
    assert marks == Marks(black_images=0, not_finite_rows=0, still=(), jumps=())
    assert not marks.any


def test_a_pause_is_found_to_the_step() -> None:
    """Steps 50 … 89 show the same; noise of a quarter of a per mille is no motion."""
    states = moving(200)
    states[50:90] = states[50] + np.random.default_rng(0).uniform(-2e-4, 2e-4, (40, 3))
    ((start, end),) = still_segments(states, 20)
    assert abs(start - 50) <= 1 and abs(end - 90) <= 1
    assert still_segments(states, 60) == []


def test_one_dimension_that_moves_is_motion() -> None:
    states = np.zeros((100, 3), np.float32)
    assert still_segments(states, 20) == [(0, 100)]
    states[:, 1] = moving(100)[:, 0]
    assert still_segments(states, 20) == []


def test_two_pauses_are_two() -> None:
    states = moving(300)
    states[20:60], states[200:260] = states[20], states[200]
    assert len(still_segments(states, 20)) == 2


@pytest.mark.parametrize("dim", [0, 2])
def test_a_leap_is_found_where_it_arrives(dim: int) -> None:
    states = moving(200)
    states[120:, dim] += 5
    assert jumps(states) == [(120, dim)]


def test_a_gripper_may_switch_and_even_paces_are_no_leaps() -> None:
    states = np.stack([np.arange(9), np.arange(9) >= 4, 1000 + np.arange(9) / 10], axis=1).astype(np.float32)
    assert jumps(states) == []


def test_rows_that_are_not_finite_are_counted() -> None:
    states, actions = moving(50), moving(50)
    states[3, 1], actions[3, 0], actions[9, 2] = np.nan, np.inf, np.nan
    assert marks_of(states, actions, 20.0, 2).not_finite_rows == 2
    assert marks_of(states, actions, 20.0, 2).black_images == 2


@pytest.mark.parametrize("length", [1, 2, 3])
def test_short_episodes_have_no_marks(length: int) -> None:
    assert not marks_of(moving(length), moving(length), 20.0, 0).any
