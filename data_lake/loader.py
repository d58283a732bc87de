"""Batches of packed rows for one rank, read ahead by a thread; how long training waited for them is counted."""

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from data_lake.packing import Packing, assign
from data_lake.samples import Batch, SampleTable

AHEAD = 2  # batches that may lie ready or be in the making


class Loader:
    """What training reads: the samples of `folder` (what preprocessing wrote) in the rows of `packing`.

    Which samples a step has follows from (seed, step) alone; ranks only share the rows among them.
    Picklable: handles are reopened in the process that reads. `input_wait_s`: seconds spent waiting for input.
    """

    def __init__(self, folder: Path, packing: Packing, *, seed: int, rows_per_step: int) -> None:
        self.table = SampleTable(folder)
        self.packing = packing
        self.seed = seed
        self.rows_per_step = rows_per_step
        self.input_wait_s = 0.0
        self._length_of: np.ndarray | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_length_of": None}

    def rows(self, step: int, rank: int = 0, world: int = 1) -> list[np.ndarray]:
        """Sample ids of each row that this rank takes in a step, balanced by tokens and squared lengths."""
        rows = self.packing.rows(self.seed, step, self.rows_per_step)
        if world == 1:
            return rows
        return [rows[place] for place in assign([self._lengths(row) for row in rows], world)[rank]]

    def batch(self, step: int, rank: int = 0, world: int = 1) -> Batch:
        """The batch of a step for this rank, read now."""
        return self.table.batch(step, self.rows(step, rank, world), self.packing.tokens)

    def batches(self, first_step: int, last_step: int, rank: int = 0, world: int = 1) -> Iterator[Batch]:
        """Batches of steps [first_step, last_step), in order. A thread reads ahead; its errors are raised here."""
        steps = iter(range(first_step, last_step))
        pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="loader")
        try:
            ahead: deque[Future[Batch]] = deque()
            while True:
                ahead.extend(pool.submit(self.batch, step, rank, world) for step in islice(steps, AHEAD - len(ahead)))
                if not ahead:
                    return
                started = time.perf_counter()
                found = ahead.popleft().result()
                self.input_wait_s += time.perf_counter() - started
                ahead.extend(pool.submit(self.batch, step, rank, world) for step in islice(steps, AHEAD - len(ahead)))
                yield found
        finally:
            pool.shutdown(cancel_futures=True)

    def _lengths(self, ids: np.ndarray) -> np.ndarray:
        """Token lengths of samples (N,)."""
        if self._length_of is None:
            length_of = np.zeros(int(self.packing.ids.max()) + 1, np.int64)
            length_of[self.packing.ids] = np.repeat(self.packing.lengths_C, self.packing.counts_C)
            self._length_of = length_of
        return self._length_of[ids]
