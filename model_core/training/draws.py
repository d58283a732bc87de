"""Noise and flow time of a sample, drawn from a counter: they depend on (seed, step, sample id) alone.

So a resume, the number of ranks and the size of a micro-batch change nothing.
"""

import numpy as np

BETA_ALPHA = 1.5  # time leans towards noise (t = 1), as in π0: t = 0.001 + 0.999 Beta(1.5, 1)


def draw(
    seed: int, step: int, sample_ids: np.ndarray, *, num_draws: int, horizon: int, action_dim: int
) -> tuple[np.ndarray, np.ndarray]:
    """noise_NKHA float32, standard normal, and time_NK float32 in [0.001, 1] for N samples, K draws each."""
    noise_NKHA = np.empty((len(sample_ids), num_draws, horizon, action_dim), np.float32)
    time_NK = np.empty((len(sample_ids), num_draws), np.float32)
    for row, sample in enumerate(sample_ids):
        # the generator counts in the lowest word; the others say whose numbers these are
        source = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, int(sample), step]))
        uniform = source.random(num_draws)
        time_NK[row] = 0.001 + 0.999 * uniform ** (1.0 / BETA_ALPHA)
        noise_NKHA[row] = source.standard_normal((num_draws, horizon, action_dim), dtype=np.float32)
    return noise_NKHA, time_NK
