"""Stamped values on the clock of rows: each row holds the newest value at or before it, never one of the future.

All times are whole nanoseconds. Row i is at first + i / rate, rounded down to the nanosecond: nothing adds up.
"""

from collections.abc import Collection
from fractions import Fraction

import numpy as np

NANOSECONDS = 10**9


def row_times(first_ns: int, last_ns: int, rate_hz: Fraction) -> np.ndarray:
    """(T,) int64: the rows from first_ns on that are not after last_ns; none where last_ns is before first_ns.

    rate_hz: a fraction of numbers below a million or so; `row * numerator` has to fit 63 bits.
    """
    step_ns = NANOSECONDS / rate_hz
    num_rows = max(0, int((last_ns - first_ns) // step_ns) + 1)
    whole_ns, rest = divmod(step_ns.numerator, step_ns.denominator)
    row_T = np.arange(num_rows, dtype=np.int64)
    return first_ns + row_T * whole_ns + row_T * rest // step_ns.denominator


def newest(stamps_N: np.ndarray, times_T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per row the index of the last of `stamps_N` (sorted) that is not after it, and its age in nanoseconds.

    Of equal stamps the last one counts. The first stamp must not be after the first row.
    """
    index_T = np.searchsorted(stamps_N, times_T, side="right") - 1
    return index_T, times_T - stamps_N[index_T]


def shared_span(streams: Collection[np.ndarray]) -> tuple[int, int]:
    """From the latest of the first stamps to the earliest of the last: where every stream has a value."""
    return max(int(stamps_N[0]) for stamps_N in streams), min(int(stamps_N[-1]) for stamps_N in streams)


def runs(is_kept_T: np.ndarray) -> list[tuple[int, int]]:
    """[begin, end) of each unbroken run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], is_kept_T, [False])).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
