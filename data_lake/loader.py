"""Batches of packed rows for one rank, read ahead by threads; how long training waited for them is counted."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from data_lake.ahead import IN_FLIGHT_BYTES, Ahead
from data_lake.balance import assign
from data_lake.files import LakePath
from data_lake.mixture import open_samples
from data_lake.packing import Packing
from data_lake.samples import Batch


class Loader:
    """What training reads: the samples of `folder` (what preprocessing or mixing wrote) in the rows of `packing`.

    Which samples a step has follows from (seed, step) alone; ranks only share the rows among them. max_bytes: of
    batches that lie ready or are in the making. Picklable: handles are reopened in the process that reads.
    `input_wait_s`: seconds spent waiting for input.
    """

    def __init__(
        self, folder: LakePath, packing: Packing, *, seed: int, rows_per_step: int, max_bytes: int = IN_FLIGHT_BYTES
    ) -> None:
        self.table = open_samples(folder)
        self.packing = packing
        self.seed = seed
        self.rows_per_step = rows_per_step
        self.max_bytes = max_bytes
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
        """Batches of steps [first_step, last_step), in order. Threads read ahead: as many batches as waiting asks
        for and max_bytes allows. Their errors are raised here."""
        ahead = Ahead(
            lambda step: self.batch(step, rank, world),
            lambda batch: batch.num_bytes,
            self.max_bytes,
            is_far=not isinstance(self.table.folder, Path),
        )
        for batch in ahead.over(range(first_step, last_step)):
            self.input_wait_s += ahead.wait_s
            ahead.wait_s = 0.0
            yield batch
