"""How often samples are met in an epoch, where some count more than others: whole passes, and a window that moves on.

Nothing is drawn: any epoch is computed from its number alone, so ranks agree and resuming is one integer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from data_lake.permutation import Permutations, derive_key
from errors import UserError

MOST = 1_000_000  # times that a sample is met in an epoch


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Weighing:
    """Streams, in the order of a packing's samples: those of one length and one component, which share a weight.

    component_S: which component; sizes_S: samples; places_S: places in an epoch, about weight * size, at least 1.
    A sample has floor(places / size) places in each epoch, or one more; over any number of epochs from the first on,
    no sample of a stream was met more than once more often than another.
    """

    component_S: np.ndarray
    sizes_S: np.ndarray
    places_S: np.ndarray

    def samples(self, seed: int, epoch: int, places_N: np.ndarray) -> np.ndarray:
        """Which sample (N,) int64, counted over all streams, has these places of an epoch, counted likewise.

        After the whole passes, epoch e has the window from e * rest on of one keyed order of all samples.
        """
        ends_S = np.cumsum(self.places_S)
        stream_N = np.searchsorted(ends_S, places_N, side="right")
        within_N = places_N - (ends_S - self.places_S)[stream_N]
        sizes_N, rest_N = self.sizes_S[stream_N], (self.places_S % self.sizes_S)[stream_N]
        past_N = within_N - (self.places_S[stream_N] - rest_N)  # the whole passes
        sample_N = within_N % sizes_N
        moving = np.flatnonzero(past_N >= 0)
        orders = Permutations(
            sizes_C=self.sizes_S, names_C=np.arange(len(self.sizes_S)), key=derive_key(seed, "window of the epoch")
        )
        turn = (epoch * rest_N[moving] + past_N[moving]) % sizes_N[moving]
        sample_N[moving] = orders.forward(stream_N[moving], turn)
        return (np.cumsum(self.sizes_S) - self.sizes_S)[stream_N] + sample_N

    def places_of(self, component: int) -> int:
        """Places that a component has in an epoch."""
        return int(self.places_S[self.component_S == component].sum())

    def as_json(self) -> list[list[int]]:
        return np.stack([self.component_S, self.sizes_S, self.places_S], axis=1).tolist()

    @classmethod
    def from_json(cls, rows: Sequence[Sequence[int]]) -> "Weighing":
        component_S, sizes_S, places_S = np.array(rows, np.int64).reshape(-1, 3).T
        return cls(component_S=component_S, sizes_S=sizes_S, places_S=places_S)


def weigh(
    lengths_U: np.ndarray, counts_U: np.ndarray, component_U: np.ndarray, weights: Sequence[float]
) -> tuple[np.ndarray, Weighing]:
    """Runs of samples (U,), those of one length and component side by side, as streams: their lengths (S,) and places.

    What rounding takes from one stream, the component's next one gets. Raises UserError PACK-010 for a weight that is
    not above 0, or too large to count the places of an epoch.
    """
    first_S = np.flatnonzero(np.diff(lengths_U, prepend=-1) | np.diff(component_U, prepend=-1))
    ends_S = np.cumsum(counts_U)[np.append(first_S[1:], len(counts_U)) - 1] if len(first_S) else first_S
    component_S, sizes_S = component_U[first_S], np.diff(ends_S, prepend=0)
    places_S = np.empty_like(sizes_S)
    for component, weight in enumerate(weights):
        if not 0 < weight <= MOST:
            raise UserError(
                "PACK-010",
                f"a component of the mixture has weight {weight}",
                where=f"component {component}",
                next_step=f"give a number above 0, up to {MOST:,}, or leave the component out",
            )
        given, due = 0, 0.0
        for stream in np.flatnonzero(component_S == component):
            due += weight * int(sizes_S[stream])
            places_S[stream] = max(1, round(due) - given)
            given += int(places_S[stream])
    return lengths_U[first_S], Weighing(component_S=component_S, sizes_S=sizes_S, places_S=places_S)
