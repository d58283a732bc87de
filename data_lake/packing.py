"""Pack samples into rows of a token budget: patterns on the length histogram, members by keyed permutation.

A packing holds no epoch: `rows(seed, step, rows_per_step)` computes who is in a row from integers alone, so it
is the same for any number of ranks and resuming is one integer.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from data_lake.patterns import Pattern, plan
from data_lake.permutation import Permutation, derive_key
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
    row, and is used for rows_P[p] rows. ids: sample ids, class after class, ascending inside a class.
    """

    capacity: int
    tokens: TokenCount
    lengths_C: np.ndarray
    counts_C: np.ndarray
    entries_P1: np.ndarray
    class_E: np.ndarray
    number_E: np.ndarray
    rows_P: np.ndarray
    ids: np.ndarray

    @property
    def num_rows(self) -> int:
        """Rows of one epoch; each sample is in exactly one of them."""
        return int(self.rows_P.sum())

    @property
    def num_samples(self) -> int:
        return len(self.ids)

    @property
    def num_tokens(self) -> int:
        return int(self.lengths_C @ self.counts_C)

    @property
    def fill_rate(self) -> float:
        """Tokens over the capacity of all rows; 1.0 for an empty packing, which wastes nothing."""
        return self.num_tokens / (self.num_rows * self.capacity) if self.num_rows else 1.0

    def rows(self, seed: int, step: int, rows_per_step: int) -> list[np.ndarray]:
        """Sample ids (int64) of each packed row of a training step.

        Global row g = step * rows_per_step + i is row g % num_rows of epoch g // num_rows: epochs follow one
        another without remainder. Raises UserError PACK-003 when there is nothing to pack.
        """
        if not self.num_rows:
            raise UserError("PACK-003", "the packing is empty: no training sample", next_step="check heldout_episodes")
        wanted = np.arange(step * rows_per_step, (step + 1) * rows_per_step)
        epochs, places = np.divmod(wanted, self.num_rows)
        found: list[np.ndarray] = []
        for epoch in np.unique(epochs):
            order = Permutation(size=self.num_rows, key=derive_key(seed, int(epoch), "rows"))
            found.extend(self._members(seed, int(epoch), order.forward(places[epochs == epoch])))
        return found

    def _members(self, seed: int, epoch: int, rows_R: np.ndarray) -> list[np.ndarray]:
        """Ids of some rows of an epoch: the patterns say how many of each class, permutations which ones."""
        ends_P = np.cumsum(self.rows_P)
        patterns_R = np.searchsorted(ends_P, rows_R, side="right")
        uses_R = rows_R - (ends_P - self.rows_P)[patterns_R]
        starts_C = np.cumsum(self.counts_C) - self.counts_C
        first_E = self._first_places()
        per_row: list[list[np.ndarray]] = [[] for _ in rows_R]
        row_F, entry_F = [], []  # one per (row, entry)
        for row, pattern in enumerate(patterns_R):
            entries = range(self.entries_P1[pattern], self.entries_P1[pattern + 1])
            row_F += [row] * len(entries)
            entry_F += entries
        classes_F = self.class_E[entry_F]
        for c in np.unique(classes_F):
            shuffle = Permutation(
                size=int(self.counts_C[c]), key=derive_key(seed, epoch, "class", int(self.lengths_C[c]))
            )
            here = np.flatnonzero(classes_F == c)
            numbers = self.number_E[[entry_F[f] for f in here]]
            firsts = first_E[[entry_F[f] for f in here]] + uses_R[[row_F[f] for f in here]] * numbers
            places = np.concatenate([first + np.arange(number) for first, number in zip(firsts, numbers, strict=True)])
            ids = self.ids[starts_C[c] + shuffle.forward(places)]
            for f, part in zip(here, np.split(ids, np.cumsum(numbers)[:-1]), strict=True):
                per_row[row_F[f]].append(part)
        return [np.concatenate(parts) for parts in per_row]

    def _first_places(self) -> np.ndarray:
        """Where in its class the places of each entry begin (E,): those of earlier patterns come before."""
        sizes_E = self.number_E * np.repeat(self.rows_P, np.diff(self.entries_P1))
        order = np.argsort(self.class_E, kind="stable")
        running = np.cumsum(sizes_E[order]) - sizes_E[order]
        starts_C = np.cumsum(self.counts_C) - self.counts_C
        first_E = np.empty_like(sizes_E)
        first_E[order] = running - starts_C[self.class_E[order]]
        return first_E

    def fill_by_row(self) -> list[tuple[float, int]]:
        """(fill, number of rows), fullest first."""
        tokens_E = self.lengths_C[self.class_E] * self.number_E
        total: dict[float, int] = {}
        for (start, end), rows in zip(pairwise(self.entries_P1), self.rows_P.tolist(), strict=True):
            fill = round(int(tokens_E[start:end].sum()) / self.capacity, 6)
            total[fill] = total.get(fill, 0) + rows
        return sorted(total.items(), reverse=True)

    def save(self, folder: Path) -> str:
        """Write classes.npz and packed.json; give back the digest of what they say."""
        described = self._described()
        digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode() + self.ids.tobytes()).hexdigest()
        np.savez(folder / "classes.npz", ids=self.ids, lengths=self.lengths_C, counts=self.counts_C)
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
            "tokens_per_row": self.capacity,
            "tokens_per_view": self.tokens.tokens_per_view,
            "state_tokens": self.tokens.state_tokens,
            "action_horizon": self.tokens.action_horizon,
            "lengths": self.lengths_C.tolist(),
            "counts": self.counts_C.tolist(),
            "patterns": patterns,
        }

    @classmethod
    def load(cls, folder: Path) -> "Packing":
        """Read what `save` wrote."""
        described = json.loads((folder / "packed.json").read_text())
        with np.load(folder / "classes.npz", allow_pickle=False) as arrays:
            ids = arrays["ids"]
        tokens = TokenCount(
            tokens_per_view=described["tokens_per_view"],
            state_tokens=described["state_tokens"],
            action_horizon=described["action_horizon"],
        )
        patterns = [(tuple((c, n) for c, n in p["members"]), p["rows"]) for p in described["patterns"]]
        lengths, counts = (np.array(described[name], np.int64) for name in ("lengths", "counts"))
        return _packing(described["tokens_per_row"], tokens, lengths, counts, patterns, ids)


def _packing(
    capacity: int,
    tokens: TokenCount,
    lengths_C: np.ndarray,
    counts_C: np.ndarray,
    patterns: Sequence[Pattern],
    ids: np.ndarray,
) -> Packing:
    entries = [entry for members, _ in patterns for entry in members]
    return Packing(
        capacity=capacity,
        tokens=tokens,
        lengths_C=lengths_C,
        counts_C=counts_C,
        entries_P1=np.cumsum([0, *(len(members) for members, _ in patterns)]),
        class_E=np.array([c for c, _ in entries], np.int64),
        number_E=np.array([number for _, number in entries], np.int64),
        rows_P=np.array([rows for _, rows in patterns], np.int64),
        ids=ids,
    )


def pack_samples(ids: np.ndarray, lengths: np.ndarray, *, capacity: int, tokens: TokenCount) -> Packing:
    """Pack samples `ids` (N,) of `lengths` (N,) tokens into rows of `capacity`.

    Raises UserError PACK-001 for a sample that no row can hold, naming it. No sample at all is fine.
    """
    ids, lengths = np.asarray(ids, np.int64), np.asarray(lengths, np.int64)
    too_long = np.flatnonzero(lengths > capacity)
    if too_long.size:
        first, worst = too_long[0], too_long[np.argmax(lengths[too_long])]
        raise UserError(
            "PACK-001",
            f"{too_long.size} sample(s) are longer than a row of {capacity} tokens",
            where=f"sample {ids[first]}: {lengths[first]} tokens; the longest, sample {ids[worst]}: {lengths[worst]}",
            next_step=f"set pack.tokens_per_row to {lengths[worst]} or more",
        )
    negative_C, class_N, counts_C = np.unique(-lengths, return_inverse=True, return_counts=True)
    patterns = plan((-negative_C).tolist(), counts_C.tolist(), capacity)
    ordered = ids[np.lexsort((ids, class_N))]
    return _packing(capacity, tokens, -negative_C, counts_C.astype(np.int64), patterns, ordered)


def assign(row_lengths: Sequence[np.ndarray], world: int) -> list[list[int]]:
    """Which rows each rank takes: (world,) lists of row positions, ascending.

    row_lengths: token lengths of the samples in each row. Longest processing time first: rows by cost (tokens
    and squared lengths, each relative to its mean), each to the rank with the least so far among those with
    fewer than ceil(rows / world). Raises UserError PACK-002 when a rank would get none.
    """
    if len(row_lengths) < world:
        raise UserError(
            "PACK-002",
            f"{len(row_lengths)} rows a step for {world} ranks: some would have nothing",
            next_step=f"set train.rows_per_step to {world} or more, or use fewer processes",
        )
    tokens = np.array([row.sum() for row in row_lengths], np.float64)
    squares = np.array([(row.astype(np.float64) ** 2).sum() for row in row_lengths])
    costs = tokens / tokens.mean() + squares / squares.mean()
    most = -(-len(row_lengths) // world)
    loads, taken = [0.0] * world, [[] for _ in range(world)]
    for row in np.lexsort((np.arange(len(costs)), -costs)).tolist():
        rank = min((r for r in range(world) if len(taken[r]) < most), key=lambda r: (loads[r], r))
        loads[rank] += float(costs[row])
        taken[rank].append(row)
    return [sorted(rows) for rows in taken]
