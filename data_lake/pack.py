"""Pack samples of known lengths: patterns on their histogram say which lengths share a row."""

from collections.abc import Sequence

import numpy as np

from data_lake.packing import Packing, TokenCount, packing_of
from data_lake.patterns import plan
from data_lake.weighing import weigh
from errors import UserError

AT_A_TIME = 1 << 16


def pack_samples(ids: np.ndarray, lengths: np.ndarray, *, capacity: int, tokens: TokenCount) -> Packing:
    """Pack samples `ids` (N,), ascending, of `lengths` (N,) tokens into rows of `capacity`.

    Raises UserError PACK-001 for a sample that no row can hold, naming it. No sample at all is fine.
    """
    return pack_runs(*runs_of(ids, lengths), capacity=capacity, tokens=tokens)


def runs_of(ids: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples `ids` (N,), ascending, of `lengths` (N,) as runs: first id, number of samples and length of each (U,)."""
    ids, lengths = np.asarray(ids, np.int64), np.asarray(lengths, np.int64)
    begins = np.flatnonzero((np.diff(ids, prepend=-2) != 1) | (np.diff(lengths, prepend=-1) != 0))
    if 2 * len(begins) > len(ids):  # runs so short that searching them costs more than they save
        begins = np.arange(len(ids))
    counts = np.diff(begins, append=len(ids))
    return ids[begins], counts, lengths[begins]


def pack_runs(
    firsts_U: np.ndarray,
    counts_U: np.ndarray,
    lengths_U: np.ndarray,
    *,
    capacity: int,
    tokens: TokenCount,
    component_U: np.ndarray | None = None,
    weights: Sequence[float] = (),
) -> Packing:
    """As `pack_samples`, of runs of neighbouring samples with equal lengths, such as those of an episode: first id,
    number of samples and length of each (U,). Memory and time follow the number of runs, not of samples.

    component_U, weights: to which component of a mixture each run belongs, ascending, and how often its samples are met
    in an epoch. Raises UserError PACK-010 for a weight that is not above 0.
    """
    too_long = np.flatnonzero(lengths_U > capacity)
    if too_long.size:
        first, worst = too_long[0], too_long[np.argmax(lengths_U[too_long])]
        raise UserError(
            "PACK-001",
            f"{counts_U[too_long].sum()} sample(s) are longer than a row of {capacity} tokens",
            where=f"sample {firsts_U[first]}: {lengths_U[first]} tokens; "
            f"the longest, sample {firsts_U[worst]}: {lengths_U[worst]}",
            next_step=f"set pack.tokens_per_row to {lengths_U[worst]} or more",
        )
    order_U = np.argsort(_narrow(capacity - lengths_U, capacity), kind="stable")
    order_U = order_U.astype(np.int32) if len(order_U) < 2**31 else order_U
    runs = firsts_U[order_U], np.cumsum(counts_U[order_U])
    weighing = None
    if component_U is not None:
        lengths_U, weighing = weigh(lengths_U[order_U], counts_U[order_U], component_U[order_U], weights)
        counts_U = weighing.places_S
    counts_L = _histogram(lengths_U, counts_U, capacity)
    lengths_C = np.flatnonzero(counts_L)[::-1]
    patterns = plan(lengths_C.tolist(), counts_L[lengths_C].tolist(), capacity)
    return packing_of(capacity, tokens, lengths_C, counts_L[lengths_C], patterns, runs, weighing)


def _histogram(lengths_U: np.ndarray, counts_U: np.ndarray, longest: int) -> np.ndarray:
    """Samples of each length (longest + 1,) int64. Some runs at a time: NumPy takes 16 bytes more of each."""
    counts_L = np.zeros(longest + 1, np.int64)
    for begin in range(0, len(lengths_U), AT_A_TIME):
        some = slice(begin, begin + AT_A_TIME)
        counts_L += np.bincount(lengths_U[some], weights=counts_U[some], minlength=longest + 1).astype(np.int64)
    return counts_L


def _narrow(values: np.ndarray, largest: int) -> np.ndarray:
    """In 16 bits where they fit: those numpy sorts by radix, ten times faster."""
    return values.astype(np.uint16) if largest < 2**16 else values
