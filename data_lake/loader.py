"""Batches of packed rows for one rank, read ahead by a thread; how long training waited for them is counted."""

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

import numpy as np

from data_lake.balance import assign
from data_lake.files import LakePath
from data_lake.mixture import open_samples
from data_lake.packing import Packing
from data_lake.samples import Batch

AHEAD = 2  # batches that may lie ready or be in the making


class Loader:
    """What training reads: the samples of `folder` (what preprocessing or mixing wrote) in the rows of `packing`.

    Which samples a step has follows from (seed, step) alone; ranks only share the rows among them.
    Picklable: handles are reopened in the process that reads. `input_wait_s`: seconds spent waiting for input.
    """

    def __init__(self, folder: LakePath, packing: Packing, *, seed: int, rows_per_step: int) -> None:
        self.table = open_samples(folder)
        self.packing = packing
        self.seed = seed
        self.rows_per_step = rows_per_step
        self.input_wait_s = 0.0

    def rows(self, step: int, rank: int = 0, world: int = 1) -> list[np.ndarray]:
        """Sample ids of each row that this rank takes in a step, balanced by tokens and squared lengths."""
        ids_N, lengths_N, ends_R = self.packing.members(self.seed, step, self.rows_per_step)
        rows = np.split(ids_N, ends_R[:-1])
        return rows if world == 1 else [rows[place] for place in assign(lengths_N, ends_R, world)[rank]]

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
