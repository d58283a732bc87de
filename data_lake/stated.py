"""Statistics that a source states of its rows, against the rows themselves.

Columns that only number rows (`index`, `timestamp`, …) and cameras are left out: nothing is normalised by them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from data_lake.findings import Finding, finding
from data_lake.schema import PLACE, dimension_names, is_number, is_vector, vectors
from data_lake.sources.episode import Episode, SourceCard
from data_lake.sources.files import ODD
from data_lake.statistics import Moments, Thinned

NORMALISED = ("observation.state", "action")
_QUANTILE = re.compile(r"^q(\d\d)$")
CLOSE = 1e-3  # of the rows' range: what float32 and running sums may cost
RANK_CLOSE = 0.02  # a stated q99 may be any quantile between 0.97 and 1.0


@dataclass(slots=True)
class Column:
    """What is kept of a column of numbers over all episodes."""

    moments: Moments
    rows: Thinned

    @classmethod
    def of(cls, rows_TD: np.ndarray, moments: Moments) -> "Column":
        rows = Thinned()
        rows.add(rows_TD)
        return cls(moments=moments, rows=rows)


@dataclass(slots=True)
class Columns:
    """The columns of the episodes so far, by the source's names. complete: no episode's rows are missing."""

    columns: dict[str, Column] = field(default_factory=dict)
    complete: bool = True
    has_quantiles: bool = True

    def add(self, episode: Episode) -> list[Finding]:
        """LAKE-142 where the episode's own statistics are not those of its rows."""
        if episode.rows is None or not episode.rows.num_rows:
            self.complete = False
            return []
        wrong: list[str] = []
        for name, rows_TD in numbers_of(episode.rows):
            if not np.isfinite(rows_TD).all():
                self.complete = False
                continue
            found = Moments.of(rows_TD)
            wrong += disagreements(name, episode.statistics.get(name, {}), found)
            known = self.columns.get(name)
            if known is None:
                self.columns[name] = Column.of(rows_TD, found)
            elif len(known.moments.mean_D) != rows_TD.shape[1]:
                self.complete = False
            else:
                known.moments = known.moments.merged(found)
                known.rows.add(rows_TD)
        if any(name in episode.statistics and not _has_quantiles(episode.statistics[name]) for name in NORMALISED):
            self.has_quantiles = False
        return [finding("LAKE-142", _some(wrong), episode=episode.source_episode)] if wrong else []

    def merge(self, other: "Columns") -> None:
        """What `other` has seen, as if it had been seen here."""
        for name, column in other.columns.items():
            known = self.columns.get(name)
            if known is None:
                known = self.columns[name] = Column(moments=column.moments, rows=Thinned())
                known.rows.merge(column.rows)
            elif len(known.moments.mean_D) != len(column.moments.mean_D):
                self.complete = False
            else:
                known.moments = known.moments.merged(column.moments)
                known.rows.merge(column.rows)
        self.complete &= other.complete
        self.has_quantiles &= other.has_quantiles

    def findings(self, card: SourceCard) -> list[Finding]:
        """LAKE-142, -143 and -144 of the statistics over all rows, LAKE-140 of dimensions that hardly move."""
        found = [*self._hardly_moving(card)]
        stated = [card.statistics[name] for name in NORMALISED if name in card.statistics]
        if not self.has_quantiles or not all(_has_quantiles(each) for each in stated):
            found.append(finding("LAKE-143"))
        if not self.complete:
            return found
        wrong: list[str] = []
        off: list[str] = []
        for name, column in sorted(self.columns.items()):
            wrong += disagreements(name, card.statistics.get(name, {}), column.moments)
            off += list(misplaced(name, card.statistics.get(name, {}), column))
        if wrong:
            found.append(finding("LAKE-142", _some(wrong), file="meta/stats.json"))
        if off:
            found.append(finding("LAKE-144", _some(off), file="meta/stats.json"))
        return found

    def _hardly_moving(self, card: SourceCard) -> Iterator[Finding]:
        for name in NORMALISED:
            column = self.columns.get(name)
            if column is None or column.rows.is_integer:
                continue
            q01_D, q99_D = column.rows.quantiles(0.01, 0.99)
            for dimension, most in hardly_moving(column.moments, q01_D, q99_D):
                called = dimension_name(card, name, dimension)
                detail = (
                    f"{called} has q01 {q01_D[dimension]:.6g} and q99 {q99_D[dimension]:.6g}; "
                    f"between 0 and its own extremes a value would be normalised to ±{most:,.0f}"
                )
                yield finding("LAKE-140", detail)


FAR = 200.0
"""Times the half range from q01 to q99: a policy never needs such a value, and its square rules any loss."""


def hardly_moving(moments: Moments, q01_D: np.ndarray, q99_D: np.ndarray) -> Iterator[tuple[int, float]]:
    """(dimension, how far out) where 0, the minimum or the maximum lies beyond FAR once [q01, q99] is [-1, 1].

    Dimensions that never change are left out: those are LAKE-052.
    """
    half_D, centre_D = (q99_D - q01_D) / 2, (q99_D + q01_D) / 2
    extremes_KD = np.stack([np.zeros_like(centre_D), moments.min_D, moments.max_D])
    reach_D = np.abs(extremes_KD - centre_D).max(axis=0)
    moving_D = moments.max_D > moments.min_D
    for dimension in np.flatnonzero(moving_D & (reach_D > FAR * half_D)):
        floor = max(half_D[dimension], np.finfo(np.float32).eps)
        yield int(dimension), float(reach_D[dimension] / floor)


def dimension_name(card: SourceCard, column: str, dimension: int) -> str:
    """`action[3] (wrist_yaw)`, or without the name where the source gives none."""
    names = card.features[column].names if column in card.features else None
    name = dimension_names(names, dimension + 1)[dimension]
    return f"{column}[{dimension}]" + (f" ({name})" if name else "")


def disagreements(name: str, stated: Mapping[str, Any], found: Moments) -> Iterator[str]:
    """Where stated mean, std, min, max or count are not those of the rows, one text per statistic."""
    range_D = found.max_D - found.min_D
    slack_D = CLOSE * range_D + 1e-5 * np.maximum(np.abs(found.min_D), np.abs(found.max_D)) + 1e-8
    sample_D = found.std / max(1, found.count - 1)  # some divide by count - 1
    rows: dict[str, tuple[np.ndarray, np.ndarray]] = {
        "mean": (found.mean_D, slack_D),
        "std": (found.std, slack_D + sample_D),
        "min": (found.min_D, slack_D),
        "max": (found.max_D, slack_D),
    }
    if "count" in stated and (count := _vector(stated["count"])) is not None and set(count.tolist()) != {found.count}:
        yield f"{name} count {stated['count']}, there are {found.count:,} rows"
    for statistic, (true_D, allowed_D) in rows.items():
        if statistic not in stated:
            continue
        said_D = _vector(stated[statistic])
        if said_D is None or said_D.shape != true_D.shape:
            yield f"{name} {statistic} is not {len(true_D)} numbers"
        elif (off := ~(np.abs(said_D - true_D) <= allowed_D)).any():
            dimension = int(np.argmax(off))
            yield f"{name}[{dimension}] {statistic} {said_D[dimension]:.6g}, of the rows {true_D[dimension]:.6g}"


def misplaced(name: str, stated: Mapping[str, Any], column: Column) -> Iterator[str]:
    """Where a stated quantile leaves another share of the rows below itself, one text per quantile."""
    range_D = column.moments.max_D - column.moments.min_D
    allowed = RANK_CLOSE + 1 / len(column.rows.rows())  # between two rows there is no rank
    for statistic, value in sorted(stated.items()):
        match, said_D = _QUANTILE.match(statistic), _vector(value)
        if match is None or said_D is None or said_D.shape != range_D.shape:
            continue
        if not np.isfinite(said_D).all():
            yield f"{name} {statistic} is not finite"
            continue
        share = int(match[1]) / 100
        below_D, up_to_D = column.rows.ranks(said_D, CLOSE * range_D + 1e-6 * np.abs(said_D))
        off_D = np.maximum(below_D - share, share - up_to_D)
        dimension = int(np.argmax(off_D))
        if off_D[dimension] > allowed:
            true = column.rows.quantiles(share)[0][dimension]
            yield f"{name}[{dimension}] {statistic} {said_D[dimension]:.6g}, of the rows {true:.6g}"


def numbers_of(rows: pa.Table) -> Iterator[tuple[str, np.ndarray]]:
    """Columns (name, (T, D)) of numbers that say something: none that only number the rows."""
    for name in rows.column_names:
        kind = rows[name].type
        if name not in PLACE and (is_vector(kind) or is_number(kind)):
            rows_TD = vectors(rows[name])
            if rows_TD is not None and rows_TD.shape[1]:
                yield name, rows_TD


def _has_quantiles(stated: Mapping[str, Any]) -> bool:
    return "q01" in stated and "q99" in stated


def _vector(value: Any) -> np.ndarray | None:
    try:
        return np.asarray(value, np.float64).reshape(-1)
    except ODD:
        return None


def _some(texts: list[str]) -> str:
    return "; ".join(texts[:3]) + (f"; and {len(texts) - 3} more" if len(texts) > 3 else "")
