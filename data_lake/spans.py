"""The order `spans`: samples of a length class are met in spans of neighbouring ids, each still exactly once an epoch.

Patterns are spread evenly over an epoch, so that how many samples of each class came before a row is a closed formula:
any row is still computed from integers alone, for any number of ranks and from any step on.
"""

import numpy as np

from data_lake.permutation import Permutations, derive_key
from data_lake.specs import SpanShuffle


def spread_rows(rows_P: np.ndarray, phases_P: np.ndarray, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows [first, last) of an epoch in which pattern p is met rows_P[p] times, at the times (use + phases_P[p]) /
    rows_P[p] in [0, 1): the pattern of each row (R,), and how often each pattern was met before `first` (P,)."""
    total, slack = int(rows_P.sum()), len(rows_P)  # a pattern is at most one use away from its share of any time
    from_P = _uses_before((first - slack) / total, rows_P, phases_P)
    until_P = _uses_before((last + slack) / total, rows_P, phases_P)
    counts_P = until_P - from_P
    pattern_K = np.repeat(np.arange(len(rows_P)), counts_P)
    use_K = np.arange(len(pattern_K)) + (from_P - np.cumsum(counts_P) + counts_P)[pattern_K]
    order_K = np.lexsort((pattern_K, _time(use_K, rows_P[pattern_K], phases_P[pattern_K])))
    skipped = first - int(from_P.sum())
    earlier = pattern_K[order_K[:skipped]]
    before_P = from_P + np.bincount(earlier, minlength=len(rows_P))
    return pattern_K[order_K[skipped : skipped + last - first]], before_P


def _time(use: np.ndarray, rows: np.ndarray, phase: np.ndarray) -> np.ndarray:
    return (use + phase) / rows


def _uses_before(time: float, rows_P: np.ndarray, phases_P: np.ndarray) -> np.ndarray:
    """How many uses of each pattern are earlier than `time`, exactly as `_time` rounds."""
    uses_P = np.clip(np.ceil(time * rows_P - phases_P), 0, rows_P).astype(np.int64)
    uses_P -= (uses_P > 0) & (_time(uses_P - 1, rows_P, phases_P) >= time)
    return uses_P + ((uses_P < rows_P) & (_time(uses_P, rows_P, phases_P) < time))


def phases(seed: int, epoch: int, number: int) -> np.ndarray:
    """When in its share of an epoch each pattern is met first: (P,) float64 in (0, 1)."""
    order = Permutations(sizes_C=np.array([2**32]), names_C=np.zeros(1, int), key=derive_key(seed, epoch, "phases"))
    places = np.arange(number)
    return (order.forward(np.zeros_like(places), places) + 0.5) / 2**32


def turns(classes_N: np.ndarray, met_C: np.ndarray) -> np.ndarray:
    """The how-manieth of its class each sample is (N,), after met_C of each that came before."""
    order = np.argsort(classes_N, kind="stable")
    sizes_C = np.bincount(classes_N, minlength=len(met_C))
    turns_N = np.empty_like(classes_N)
    turns_N[order] = np.arange(len(order)) - (np.cumsum(sizes_C) - sizes_C - met_C)[classes_N[order]]
    return turns_N


def in_spans(
    classes_N: np.ndarray,
    turns_N: np.ndarray,
    sizes_C: np.ndarray,
    names_C: np.ndarray,
    spans: SpanShuffle,
    key: tuple[int, int],
) -> np.ndarray:
    """Which sample of its class (N,) comes at its turns_N[n]-th turn: a bijection of [0, sizes_C[c]) for each c.

    Spans of `length` are permuted (what is left over forms a shorter one), the whole is turned by a keyed distance,
    and each `window` of turns is shuffled. key: seed and epoch.
    """
    length, window = spans.length, spans.window
    windows_N = turns_N // window
    asked_U, of_N = np.unique(np.stack([classes_N, windows_N]), axis=1, return_inverse=True)
    class_U, window_U = asked_U
    inside = Permutations(
        sizes_C=np.minimum(window, sizes_C[class_U] - window_U * window),
        names_C=(names_C[class_U] * 0x9E3779B1 + window_U) % 2**32,
        key=derive_key(*key, "windows"),
    )
    turns_N = windows_N * window + inside.forward(of_N.reshape(-1), turns_N % window)
    spans_C = sizes_C // length
    span_N, whole = turns_N // length, turns_N // length < spans_C[classes_N]
    order = Permutations(sizes_C=spans_C, names_C=names_C, key=derive_key(*key, "spans"))
    span_N[whole] = order.forward(classes_N[whole], span_N[whole])
    begin = Permutations(sizes_C=sizes_C, names_C=names_C, key=derive_key(*key, "begin"))
    return (span_N * length + turns_N % length + begin.forward(classes_N, np.zeros_like(turns_N))) % sizes_C[classes_N]
