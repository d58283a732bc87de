"""Pack samples into rows of a token budget: patterns on the length histogram, members by keyed permutation.

A packing holds no epoch: `rows(seed, step, rows_per_step)` computes who is in a row from integers alone, so it
is the same for any number of ranks and resuming is one integer.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np

from data_lake.files import LakePath
from data_lake.patterns import Pattern
from data_lake.permutation import Permutations, derive_key
from data_lake.spans import in_spans, phases, spread_rows, turns
from data_lake.specs import SpanShuffle
from data_lake.weighing import Weighing
from errors import UserError


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenCount:
    """How a sample's length is made: its views, its text, a state token or none, and the action suffix."""

    tokens_per_view: int
    state_tokens: int
    action_horizon: int

    def prefix(self, num_views: np.ndarray, num_text: np.ndarray) -> np.ndarray:
        """Tokens of the prefix (N,) int64 from the number of views (N,) and of text tokens (N,)."""
        views = np.asarray(num_views, np.int64) * self.tokens_per_view
        return views + np.asarray(num_text, np.int64) + self.state_tokens

    def length(self, num_views: np.ndarray, num_text: np.ndarray) -> np.ndarray:
        """Tokens of the whole sample: prefix and one suffix (N,) int64."""
        return self.prefix(num_views, num_text) + self.action_horizon


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Packing:
    """capacity: tokens of a row. lengths_C, counts_C: of the length classes, descending, and samples in each.

    Pattern p has the entries entries_P1[p] to entries_P1[p + 1], each a class and how many of it go into one
    row, and is used for rows_P[p] rows; first_E: where in its class the places of an entry begin. Samples of a
    class lie in runs of neighbouring ids: run u begins with id firsts_U[u] and ends before place ends_U[u],
    counted over all classes; ids ascend inside a class. weighing: how places, then counted by counts_C, become ids.
    shuffle: as PackSpec says.
    """

    capacity: int
    tokens: TokenCount
    lengths_C: np.ndarray
    counts_C: np.ndarray
    entries_P1: np.ndarray
    class_E: np.ndarray
    number_E: np.ndarray
    first_E: np.ndarray
    rows_P: np.ndarray
    firsts_U: np.ndarray
    ends_U: np.ndarray
    weighing: Weighing | None = None
    shuffle: Literal["uniform"] | SpanShuffle = "uniform"

    @property
    def num_rows(self) -> int:
        """Rows of one epoch; each sample is in exactly one of them, unless it is weighed."""
        return int(self.rows_P.sum())

    @property
    def num_samples(self) -> int:
        return int(self.ends_U[-1]) if len(self.ends_U) else 0

    @property
    def ids(self) -> np.ndarray:
        """All samples (N,), class after class."""
        return _expand(self.firsts_U, np.diff(self.ends_U, prepend=0))[1]

    @property
    def num_tokens(self) -> int:
        return int(self.lengths_C @ self.counts_C)

    @property
    def fill_rate(self) -> float:
        """Tokens over the capacity of all rows; 1.0 for an empty packing, which wastes nothing."""
        return self.num_tokens / (self.num_rows * self.capacity) if self.num_rows else 1.0

    def rows(self, seed: int, step: int, rows_per_step: int) -> list[np.ndarray]:
        """Sample ids (int64) of each packed row of a training step; see `members`."""
        ids_N, _, ends_R = self.members(seed, step, rows_per_step)
        return np.split(ids_N, ends_R[:-1])

    def members(self, seed: int, step: int, rows_per_step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The samples of a step, row after row: ids_N and lengths_N (N,) int64, and where each row ends (R,).

        Global row g = step * rows_per_step + i is row g % num_rows of epoch g // num_rows: epochs follow one
        another without remainder. Raises UserError PACK-003 when there is nothing to pack.
        """
        if not self.num_rows:
            raise UserError("PACK-003", "the packing is empty: no training sample", next_step="check heldout_episodes")
        epochs_R, places_R = np.divmod(np.arange(step * rows_per_step, (step + 1) * rows_per_step), self.num_rows)
        parts = []
        for epoch in range(epochs_R[0], epochs_R[-1] + 1):
            here_R = places_R[epochs_R == epoch]
            if self.shuffle == "uniform":
                parts.append(self._uniform(seed, epoch, here_R))
            else:
                parts.append(self._spans(seed, epoch, int(here_R[0]), int(here_R[-1]) + 1, self.shuffle))
        ids_N, lengths_N, sizes_R = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return ids_N, lengths_N, np.cumsum(sizes_R)

    def _uniform(self, seed: int, epoch: int, places_R: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids and lengths of the samples in some rows of an epoch, and how many each row has: the patterns say how
        many of each class, permutations which ones."""
        key, sizes = derive_key(seed, epoch, "rows"), np.array([self.num_rows])
        order = Permutations(sizes_C=sizes, names_C=np.zeros(1, int), key=key)
        rows_R = order.forward(np.zeros_like(places_R), places_R)
        ends_P = np.cumsum(self.rows_P)
        patterns_R = np.searchsorted(ends_P, rows_R, side="right")
        uses_R = rows_R - (ends_P - self.rows_P)[patterns_R]
        row_F, entry_F = self._entries(patterns_R)
        number_F = self.number_E[entry_F]
        of_N, place_N = _expand(self.first_E[entry_F] + uses_R[row_F] * number_F, number_F)
        class_N = self.class_E[entry_F][of_N]
        shuffles = Permutations(sizes_C=self.counts_C, names_C=self.lengths_C, key=derive_key(seed, epoch, "classes"))
        return self._found((seed, epoch), class_N, shuffles.forward(class_N, place_N), row_F, number_F, len(places_R))

    def _spans(
        self, seed: int, epoch: int, first: int, last: int, spans: SpanShuffle
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As `_uniform`, of rows [first, last) of an epoch in the order of spans."""
        patterns_R, before_P = spread_rows(self.rows_P, phases(seed, epoch, len(self.rows_P)), first, last)
        row_F, entry_F = self._entries(patterns_R)
        number_F = self.number_E[entry_F]
        class_N = np.repeat(self.class_E[entry_F], number_F)
        met_E = self.number_E * np.repeat(before_P, np.diff(self.entries_P1))
        met_C = np.bincount(self.class_E, weights=met_E, minlength=len(self.counts_C)).astype(np.int64)
        place_N = in_spans(class_N, turns(class_N, met_C), self.counts_C, self.lengths_C, spans, (seed, epoch))
        return self._found((seed, epoch), class_N, place_N, row_F, number_F, last - first)

    def _entries(self, patterns_R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The entries of each row's pattern: which row, which entry (F,)."""
        return _expand(self.entries_P1[patterns_R], np.diff(self.entries_P1)[patterns_R])

    def _found(
        self,
        when: tuple[int, int],
        class_N: np.ndarray,
        place_N: np.ndarray,
        row_F: np.ndarray,
        number_F: np.ndarray,
        num_rows: int,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        starts_C = np.cumsum(self.counts_C) - self.counts_C
        places_N = starts_C[class_N] + place_N
        ids_N = self._ids(self.weighing.samples(*when, places_N) if self.weighing else places_N)
        sizes_R = np.bincount(row_F, weights=number_F, minlength=num_rows).astype(np.int64)
        return ids_N, self.lengths_C[class_N], sizes_R

    def _ids(self, places_N: np.ndarray) -> np.ndarray:
        """The samples at these places, counted over all classes."""
        if len(self.firsts_U) == self.num_samples:  # every run is one sample: nothing to search
            return self.firsts_U[places_N]
        runs_N = np.searchsorted(self.ends_U, places_N, side="right")
        begins_N = np.where(runs_N > 0, self.ends_U[runs_N - 1], 0)
        return self.firsts_U[runs_N] + places_N - begins_N

    def fill_by_row(self) -> list[tuple[float, int]]:
        """(fill, number of rows), fullest first."""
        tokens_E = self.lengths_C[self.class_E] * self.number_E
        total: dict[float, int] = {}
        for (start, end), rows in zip(pairwise(self.entries_P1), self.rows_P.tolist(), strict=True):
            fill = round(int(tokens_E[start:end].sum()) / self.capacity, 6)
            total[fill] = total.get(fill, 0) + rows
        return sorted(total.items(), reverse=True)

    def save(self, folder: Path) -> str:
        """Write runs.npz and packed.json; give back the digest of what they say."""
        described = self._described()
        digest = hashlib.sha256(
            json.dumps(described, sort_keys=True).encode() + self.firsts_U.tobytes() + self.ends_U.tobytes()
        ).hexdigest()
        np.savez(folder / "runs.npz", firsts=self.firsts_U, ends=self.ends_U)
        figures = {
            "num_rows": self.num_rows,
            "num_samples": self.num_samples,
            "num_tokens": self.num_tokens,
            "fill_rate": self.fill_rate,
            "fill_by_row": self.fill_by_row(),
            "digest": digest,
        }
        (folder / "packed.json").write_text(json.dumps(described | figures) + "\n")
        return digest

    def _described(self) -> dict[str, object]:
        members_E = np.stack([self.class_E, self.number_E], axis=1).tolist()
        patterns = [
            {"rows": rows, "members": members_E[start:end]}
            for (start, end), rows in zip(pairwise(self.entries_P1), self.rows_P.tolist(), strict=True)
        ]
        return {
            **({} if self.shuffle == "uniform" else {"shuffle": asdict(self.shuffle)}),
            "tokens_per_row": self.capacity,
            "tokens_per_view": self.tokens.tokens_per_view,
            "state_tokens": self.tokens.state_tokens,
            "action_horizon": self.tokens.action_horizon,
            "lengths": self.lengths_C.tolist(),
            "counts": self.counts_C.tolist(),
            "patterns": patterns,
            **({"streams": self.weighing.as_json()} if self.weighing else {}),
        }

    @classmethod
    def load(cls, folder: LakePath) -> "Packing":
        """Read what `save` wrote."""
        described = json.loads((folder / "packed.json").read_text())
        with (folder / "runs.npz").open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            runs = arrays["firsts"], arrays["ends"]
        tokens = TokenCount(
            tokens_per_view=described["tokens_per_view"],
            state_tokens=described["state_tokens"],
            action_horizon=described["action_horizon"],
        )
        patterns = [(tuple((c, n) for c, n in p["members"]), p["rows"]) for p in described["patterns"]]
        lengths, counts = (np.array(described[name], np.int64) for name in ("lengths", "counts"))
        weighing = Weighing.from_json(described["streams"]) if "streams" in described else None
        packing = packing_of(described["tokens_per_row"], tokens, lengths, counts, patterns, runs, weighing)
        shuffle = SpanShuffle(**described["shuffle"]) if "shuffle" in described else "uniform"
        return replace(packing, shuffle=shuffle)


def packing_of(
    capacity: int,
    tokens: TokenCount,
    lengths_C: np.ndarray,
    counts_C: np.ndarray,
    patterns: Sequence[Pattern],
    runs: tuple[np.ndarray, np.ndarray],
    weighing: Weighing | None,
) -> Packing:
    """From the classes, the patterns on them and the runs (first id, end among all places). For what makes one see
    `data_lake/pack.py`."""
    entries = np.array([entry for members, _ in patterns for entry in members], np.int64).reshape(-1, 2)
    entries_P1 = np.cumsum([0, *(len(members) for members, _ in patterns)])
    rows_P = np.array([rows for _, rows in patterns], np.int64)
    return Packing(
        capacity=capacity,
        tokens=tokens,
        lengths_C=lengths_C,
        counts_C=counts_C,
        entries_P1=entries_P1,
        class_E=entries[:, 0],
        number_E=entries[:, 1],
        first_E=_first_places(entries[:, 0], entries[:, 1] * np.repeat(rows_P, np.diff(entries_P1)), counts_C),
        rows_P=rows_P,
        firsts_U=runs[0],
        ends_U=runs[1],
        weighing=weighing,
    )


def _first_places(class_E: np.ndarray, sizes_E: np.ndarray, counts_C: np.ndarray) -> np.ndarray:
    """Where in its class the places of each entry begin (E,): those of earlier patterns come before."""
    order = np.argsort(class_E, kind="stable")
    running = np.cumsum(sizes_E[order]) - sizes_E[order]
    starts_C = np.cumsum(counts_C) - counts_C
    first_E = np.empty_like(sizes_E)
    first_E[order] = running - starts_C[class_E[order]]
    return first_E


def _expand(firsts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranges [first, first + count) end to end: which range each value is of, and the values."""
    of = np.repeat(np.arange(len(counts)), counts)
    return of, np.arange(len(of)) + (firsts - np.cumsum(counts) + counts)[of]
