"""Marks of an episode's quality: where nothing moves, and where the state leaps. They inform; nothing is left out."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

STILL_S = 1.0
STILL_SHARE = 0.01  # of a dimension's range in the episode: within it, nothing moves
STILL_FLOOR = 1e-3  # in the data's units: noise of a joint that never moves
JUMP_DEVIATIONS = 20.0  # median absolute deviations above the median step
JUMP_TIMES = 3.0  # the median step
JUMP_SHARE = 0.1  # of a dimension's range: a smaller step is no jump, however still the rest
GRIPPER_VALUES = 3  # a dimension with no more values than these switches, and may


@dataclass(frozen=True, kw_only=True, slots=True)
class Marks:
    """Of one episode. still: [from, to) in steps. jumps: (step that is reached, dimension).

    black_images: source images without any light. not_finite_rows: rows with NaN or infinity.
    """

    black_images: int
    not_finite_rows: int
    still: tuple[tuple[int, int], ...]
    jumps: tuple[tuple[int, int], ...]

    @property
    def any(self) -> bool:
        return bool(self.black_images or self.not_finite_rows or self.still or self.jumps)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def marks_of(proprio_TP: np.ndarray, actions_TA: np.ndarray, fps: float, black_images: int) -> Marks:
    """Marks of an episode from its states, actions and count of black images."""
    finite_T = np.isfinite(proprio_TP).all(axis=1) & np.isfinite(actions_TA).all(axis=1)
    return Marks(
        black_images=black_images,
        not_finite_rows=int((~finite_T).sum()),
        still=tuple(still_segments(np.nan_to_num(proprio_TP), max(2, round(STILL_S * fps)))),
        jumps=tuple(jumps(np.nan_to_num(proprio_TP))),
    )


def still_segments(states_TD: np.ndarray, steps: int) -> list[tuple[int, int]]:
    """[from, to) of the stretches in which every `steps` steps on end stay within STILL_SHARE of each dimension's
    range, or STILL_FLOOR where that is wider."""
    if len(states_TD) < steps:
        return []
    band_D = np.maximum(STILL_SHARE * np.ptp(states_TD, axis=0), STILL_FLOOR)
    windows = np.lib.stride_tricks.sliding_window_view(states_TD, steps, axis=0)
    starts = np.flatnonzero((np.ptp(windows, axis=-1) <= band_D).all(axis=1))
    if not len(starts):
        return []
    runs = np.split(starts, np.flatnonzero(np.diff(starts) > 1) + 1)
    return [(int(run[0]), int(run[-1]) + steps) for run in runs]


def jumps(states_TD: np.ndarray) -> list[tuple[int, int]]:
    """(step, dimension) of steps larger than the median step by JUMP_DEVIATIONS median absolute deviations, than
    JUMP_TIMES the median step, and than JUMP_SHARE of the dimension's range.

    Dimensions that only switch between a few values are left alone."""
    if len(states_TD) < 3:
        return []
    moved_SD = np.abs(np.diff(states_TD.astype(np.float64), axis=0))
    median_D = np.median(moved_SD, axis=0)
    deviation_D = np.median(np.abs(moved_SD - median_D), axis=0)
    usual_D = np.maximum(median_D + JUMP_DEVIATIONS * deviation_D, JUMP_TIMES * median_D)
    limit_D = np.maximum(usual_D, JUMP_SHARE * np.ptp(states_TD, axis=0))
    switches_D = np.array([len(np.unique(column)) <= GRIPPER_VALUES for column in states_TD.T])
    steps, dimensions = np.nonzero((moved_SD > limit_D) & ~switches_D)
    return [(int(step) + 1, int(dimension)) for step, dimension in zip(steps, dimensions, strict=True)]
