"""Noise and time: of a sample, its step and the seed alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from model_core.training.draws import draw

SIZES = {"num_draws": 2, "horizon": 3, "action_dim": 4}


@given(
    st.lists(st.integers(0, 2**40), min_size=1, max_size=6, unique=True), st.integers(0, 10**6), st.integers(0, 2**31)
)
def test_a_samples_draw_does_not_depend_on_its_neighbours(ids: list[int], step: int, seed: int) -> None:
    noise, time = draw(seed, step, np.array(ids), **SIZES)
    for row in range(len(ids)):
        noise_alone, time_alone = draw(seed, step, np.array(ids[row : row + 1]), **SIZES)
        assert (noise_alone[0] == noise[row]).all() and (time_alone[0] == time[row]).all()


def test_another_sample_step_or_seed_has_other_noise() -> None:
    first = draw(0, 0, np.array([5]), **SIZES)[0]
    for seed, step, sample in [(1, 0, 5), (0, 1, 5), (0, 0, 6)]:
        assert not np.isclose(first, draw(seed, step, np.array([sample]), **SIZES)[0]).any()


def test_shapes_and_distribution() -> None:
    noise, time = draw(3, 9, np.arange(4000), **SIZES)
    assert noise.shape == (4000, 2, 3, 4) and noise.dtype == np.float32
    assert time.shape == (4000, 2) and time.dtype == np.float32
    assert abs(noise.mean()) < 0.01 and abs(noise.std() - 1) < 0.01
    assert time.min() >= 0.001 and time.max() <= 1.0
    assert abs(time.mean() - (0.001 + 0.999 * 0.6)) < 0.01  # the mean of Beta(1.5, 1) is 0.6
