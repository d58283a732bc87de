"""Statistics of rows, exact and mergeable: count, mean, variance, range and quantiles per dimension.

Quantiles do not average, so merged ones are computed from the rows themselves, which are kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Moments:
    """count of rows, mean_D, m2_D (sum of squared distances to the mean), min_D and max_D, all float64."""

    count: int
    mean_D: np.ndarray
    m2_D: np.ndarray
    min_D: np.ndarray
    max_D: np.ndarray

    @classmethod
    def of(cls, rows_TD: np.ndarray) -> "Moments":
        """Of rows (T, D), T at least 1."""
        rows_DT = np.ascontiguousarray(rows_TD.T, np.float64)  # sums along memory: five times as fast for few D
        mean_D = rows_DT.mean(axis=1)
        return cls(
            count=len(rows_TD),
            mean_D=mean_D,
            m2_D=((rows_DT - mean_D[:, None]) ** 2).sum(axis=1),
            min_D=rows_DT.min(axis=1),
            max_D=rows_DT.max(axis=1),
        )

    def merged(self, other: "Moments") -> "Moments":
        """Of both sets of rows together (Chan, Golub and LeVeque 1983)."""
        count = self.count + other.count
        apart_D = other.mean_D - self.mean_D
        return Moments(
            count=count,
            mean_D=self.mean_D + apart_D * (other.count / count),
            m2_D=self.m2_D + other.m2_D + apart_D**2 * (self.count * other.count / count),
            min_D=np.minimum(self.min_D, other.min_D),
            max_D=np.maximum(self.max_D, other.max_D),
        )

    def as_json(self) -> dict[str, Any]:
        """Exactly: floats are written as the shortest text that gives them back."""
        arrays = {"mean_D": self.mean_D, "m2_D": self.m2_D, "min_D": self.min_D, "max_D": self.max_D}
        return {"count": self.count, **{name: array_D.tolist() for name, array_D in arrays.items()}}

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> "Moments":
        arrays = {name: np.asarray(said[name], np.float64) for name in ("mean_D", "m2_D", "min_D", "max_D")}
        return cls(count=said["count"], **arrays)

    @property
    def std(self) -> np.ndarray:
        """Standard deviation of the population (divided by count), as numpy's default."""
        return np.sqrt(self.m2_D / self.count)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Statistics:
    """Moments and the rows themselves, in the pieces in which they came."""

    moments: Moments
    pieces: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, rows_TD: np.ndarray) -> "Statistics":
        """Of rows (T, D), T at least 1."""
        return cls(moments=Moments.of(rows_TD), pieces=(rows_TD,))

    def merged(self, other: "Statistics") -> "Statistics":
        """Of both sets of rows together; the order does not change quantiles, count and range."""
        return Statistics(moments=self.moments.merged(other.moments), pieces=self.pieces + other.pieces)

    def quantiles(self, *shares: float) -> np.ndarray:
        """Quantiles (len(shares), D) over all rows, linear between neighbours as numpy's default."""
        return np.quantile(np.concatenate(self.pieces).astype(np.float64), shares, axis=0)

    def as_json(self) -> dict[str, list[float] | int]:
        """mean, std, min, max, q01, q99 as lists of D floats, and the count."""
        q01_D, q99_D = self.quantiles(0.01, 0.99)
        return {
            "mean": self.moments.mean_D.tolist(),
            "std": self.moments.std.tolist(),
            "min": self.moments.min_D.tolist(),
            "max": self.moments.max_D.tolist(),
            "q01": q01_D.tolist(),
            "q99": q99_D.tolist(),
            "count": self.moments.count,
        }


class Thinned:
    """Every n-th row of all that came, evenly: exact while few, and never more than `limit` numbers in memory."""

    def __init__(self, limit: int = 4_000_000) -> None:
        self.limit, self.stride, self.count = limit, 1, 0
        self._pieces: list[np.ndarray] = []
        self._kept = 0

    @classmethod
    def restored(cls, rows_KD: np.ndarray, *, stride: int, count: int) -> "Thinned":
        """From what `rows`, `stride` and `count` were."""
        thinned = cls()
        thinned.stride, thinned.count = stride, count
        thinned._pieces, thinned._kept = [rows_KD], rows_KD.size
        return thinned

    def add(self, rows_TD: np.ndarray) -> None:
        """Rows (T, D), as wide as those before."""
        piece_TD = np.array(rows_TD[-self.count % self.stride :: self.stride])
        self.count += len(rows_TD)
        self._pieces.append(piece_TD)
        self._kept += piece_TD.size
        self.thin(self.limit)

    def merge(self, other: "Thinned") -> None:
        """What `other` kept of its rows, as evenly as here."""
        while self.stride < other.stride:
            self._halve()
        piece_TD = np.array(other.rows()[:: self.stride // other.stride])
        self._pieces.append(piece_TD)
        self.count += other.count
        self._kept += piece_TD.size
        self.thin(self.limit)

    def thin(self, limit: int) -> None:
        """Keep `limit` numbers at most, but one row."""
        while self._kept > limit and len(self.rows()) > 1:
            self._halve()

    def _halve(self) -> None:
        self._pieces = [self.rows()[::2].copy()] if self._pieces else []
        self._kept = sum(piece_TD.size for piece_TD in self._pieces)
        self.stride *= 2

    @property
    def is_integer(self) -> bool:
        return self._pieces[0].dtype.kind != "f"

    def rows(self) -> np.ndarray:
        """Those kept (K, D)."""
        self._pieces = [np.concatenate(self._pieces)]
        return self._pieces[0]

    def quantiles(self, *shares: float) -> np.ndarray:
        """(len(shares), D), linear between neighbours as numpy's default."""
        return np.quantile(self.rows().astype(np.float64), shares, axis=0)

    def ranks(self, values_D: np.ndarray, slack_D: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Shares (D,), (D,) of rows below `values_D - slack_D`, and of rows up to `values_D + slack_D`."""
        rows = self.rows()
        return (rows < values_D - slack_D).mean(axis=0), (rows <= values_D + slack_D).mean(axis=0)


def constant_dimensions(summary: dict[str, list[float] | int], tolerance: float = 1e-6) -> list[int]:
    """Dimensions whose 1 % to 99 % range is within `tolerance` of nothing, relative to their size.

    A normaliser must not divide by such a range; a person should know which they are.
    """
    q01_D, q99_D = np.asarray(summary["q01"]), np.asarray(summary["q99"])
    return np.flatnonzero(q99_D - q01_D <= tolerance * np.maximum(1.0, np.abs(q99_D))).tolist()
