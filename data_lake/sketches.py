"""Statistics of rows that need not be at hand any more: exact moments, and a sketch of each dimension's quantiles.

The sketch is a t-digest (Apache DataSketches): unlike KLL and REQ it tosses no coins, so the same rows in the same
order give the same bytes. Measured at 1 % and 99 % of millions of rows, its rank is within 0.1 % of all rows.
"""

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self

import numpy as np
from datasketches import tdigest_float

from data_lake.statistics import Moments, moments_json

SIZE = 500  # about as many centroids are kept: 5 kB a dimension


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Summary:
    """moments, and the serialised sketch of each dimension."""

    moments: Moments
    sketches: tuple[bytes, ...]

    @classmethod
    def of(cls, pieces: Iterable[np.ndarray]) -> Self:
        """Of rows (T, D) in pieces, at least one row in each."""
        digests, found = [], []
        for rows_TD in pieces:
            digests = digests or [tdigest_float(SIZE) for _ in range(rows_TD.shape[1])]
            found.append(Moments.of(rows_TD))
            for digest, column_T in zip(digests, rows_TD.T, strict=True):
                digest.update(np.array(column_T, np.float32))  # which may be read-only as it came
        return cls(moments=reduce(Moments.merged, found), sketches=tuple(digest.serialize() for digest in digests))

    def merged(self, others: Iterable[Self]) -> Self:
        """Of all rows together; quantiles depend on the order within the sketch's error."""
        found = [self, *others]
        if len(found) == 1:
            return self
        digests = [tdigest_float(SIZE) for _ in self.sketches]
        for each in found:
            for digest, content in zip(digests, each.sketches, strict=True):
                digest.merge(tdigest_float.deserialize(content))
        moments = reduce(Moments.merged, [each.moments for each in found])
        return type(self)(moments=moments, sketches=tuple(digest.serialize() for digest in digests))

    def quantiles(self, *shares: float) -> np.ndarray:
        """(len(shares), D), within the sketch's error."""
        digests = [tdigest_float.deserialize(content) for content in self.sketches]
        return np.array([[digest.get_quantile(share) for digest in digests] for share in shares])

    def statistics_json(self) -> dict[str, list[float] | int]:
        """What `Statistics.as_json` says of the same rows, quantiles within the sketch's error."""
        q01_D, q99_D = self.quantiles(0.01, 0.99)
        quantiles = {"q01": q01_D.tolist(), "q99": q99_D.tolist()}
        return {**moments_json(self.moments), **quantiles, "count": self.moments.count}

    def as_json(self) -> dict[str, Any]:
        """To be kept; `from_json` gives the same again, bit for bit."""
        moments = self.moments
        return {
            "count": moments.count,
            "mean": moments.mean_D.tolist(),
            "m2": moments.m2_D.tolist(),
            "min": moments.min_D.tolist(),
            "max": moments.max_D.tolist(),
            "sketches": [base64.b64encode(content).decode() for content in self.sketches],
        }

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Self:
        arrays = {f"{name}_D": np.array(told[name]) for name in ("mean", "m2", "min", "max")}
        return cls(
            moments=Moments(count=told["count"], **arrays),
            sketches=tuple(base64.b64decode(content) for content in told["sketches"]),
        )
