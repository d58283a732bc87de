"""Shares the packed rows of a step among ranks, so that none waits long for another."""

import heapq

import numpy as np

from errors import UserError


def assign(lengths_N: np.ndarray, ends_R: np.ndarray, world: int) -> list[list[int]]:
    """Which rows of a step each rank takes: (world,) lists of row positions, ascending.

    lengths_N, ends_R: token lengths of the samples row after row, and where each row ends (see `members`). Longest
    processing time first: rows by cost (tokens and squared lengths, each relative to its mean), each to the rank
    with the least so far among those with fewer than ceil(rows / world). Raises UserError PACK-002 when a rank
    would get none.
    """
    num_rows = len(ends_R)
    if num_rows < world:
        raise UserError(
            "PACK-002",
            f"{num_rows} rows a step for {world} ranks: some would have nothing",
            next_step=f"set train.rows_per_step to {world} or more, or use fewer processes",
        )
    begins_R = np.concatenate(([0], ends_R[:-1]))
    tokens_R = np.add.reduceat(lengths_N.astype(np.float64), begins_R)
    squares_R = np.add.reduceat(lengths_N.astype(np.float64) ** 2, begins_R)
    costs_R = tokens_R / tokens_R.mean() + squares_R / squares_R.mean()
    most = -(-num_rows // world)
    taken: list[list[int]] = [[] for _ in range(world)]
    lightest = [(0.0, rank) for rank in range(world)]  # a heap: load and rank
    for row in np.lexsort((np.arange(num_rows), -costs_R)).tolist():
        load, rank = lightest[0]
        taken[rank].append(row)
        if len(taken[rank]) < most:
            heapq.heapreplace(lightest, (load + float(costs_R[row]), rank))
        else:
            heapq.heappop(lightest)
    return [sorted(rows) for rows in taken]
