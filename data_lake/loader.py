"""Batches of packed rows for one rank, read ahead by threads or a cluster; how long training waited is counted."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from data_lake.ahead import IN_FLIGHT_BYTES, WAITING_THREADS, Ahead, threads
from data_lake.balance import assign
from data_lake.decode_pool import pool
from data_lake.files import LakePath
from data_lake.mixture import open_samples
from data_lake.packing import Packing
from data_lake.samples import Batch
from errors import UserError


class Loader:
    """What training reads: the samples of `folder` (what preprocessing or mixing wrote) in the rows of `packing`.

    Which samples a step has follows from (seed, step) alone; ranks only share the rows among them. max_bytes: of
    batches that lie ready or are in the making. ray_address: of the cluster that makes batches, a core for each, with
    the lake at the same address; "" for threads of this process. Picklable: handles are reopened in the process that
    reads. `input_wait_s`: seconds spent waiting for input.
    """

    def __init__(
        self,
        folder: LakePath,
        packing: Packing,
        *,
        seed: int,
        rows_per_step: int,
        max_bytes: int = IN_FLIGHT_BYTES,
        ray_address: str = "",
    ) -> None:
        self.table = open_samples(folder, threads=1 if ray_address else 0)
        self.packing = packing
        self.seed = seed
        self.rows_per_step = rows_per_step
        self.max_bytes = max_bytes
        self.ray_address = ray_address
        self.input_wait_s = 0.0

    def rows(self, step: int, rank: int = 0, world: int = 1) -> list[np.ndarray]:
        """Sample ids of each row that this rank takes in a step, balanced by tokens and squared lengths."""
        return self._share(step, rank, world)[0]

    def _share(self, step: int, rank: int, world: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The ids of each of this rank's rows, and the lengths of the same samples as the packing has them."""
        ids_N, lengths_N, ends_R = self.packing.members(self.seed, step, self.rows_per_step)
        rows, lengths = np.split(ids_N, ends_R[:-1]), np.split(lengths_N, ends_R[:-1])
        if world == 1:
            return rows, lengths
        mine = assign(lengths_N, ends_R, world)[rank]
        return [rows[place] for place in mine], [lengths[place] for place in mine]

    def batch(self, step: int, rank: int = 0, world: int = 1) -> Batch:
        """The batch of a step for this rank, read now. Raises UserError LOAD-003 when the packing is of other samples:
        of more, or of ones of other lengths."""
        rows, lengths = self._share(step, rank, world)
        if (last := max((int(row.max()) for row in rows if len(row)), default=-1)) >= self.table.num_samples:
            raise self._of_others(f"it holds sample {last}, and there are {self.table.num_samples}")
        batch = self.table.batch(step, rows, self.packing.tokens)
        packed_N = np.concatenate([*lengths, np.empty(0, np.int64)])
        if (wrong := np.flatnonzero(batch.prefix_lengths + self.packing.tokens.action_horizon != packed_N)).size:
            place = wrong[0]
            length = batch.prefix_lengths[place] + self.packing.tokens.action_horizon
            told = f"sample {batch.sample_ids[place]} has {length} tokens and {int(packed_N[place])} there"
            raise self._of_others(told)
        return batch

    def _of_others(self, told: str) -> UserError:
        return UserError(
            "LOAD-003",
            f"the packing was made for other samples: {told}",
            where=str(self.table.folder),
            next_step="take the samples and the packing of one run; `./vlaloop show pack/…` names what it was made of",
        )

    def batches(self, first_step: int, last_step: int, rank: int = 0, world: int = 1) -> Iterator[Batch]:
        """Batches of steps [first_step, last_step), in order, the same whoever makes them. As many are made ahead
        as waiting asks for and max_bytes allows. Errors are raised here: those of reading, and those of
        `decode_pool.pool`."""
        make, is_far = partial(self.batch, rank=rank, world=world), not isinstance(self.table.folder, Path)
        own = partial(threads, least=WAITING_THREADS) if is_far else threads
        makers = partial(pool, self.ray_address, Batch.copied) if self.ray_address else own
        ahead = Ahead(make, _num_bytes, self.max_bytes, makers, is_far=is_far)
        for batch in ahead.over(range(first_step, last_step)):
            self.input_wait_s += ahead.wait_s
            ahead.wait_s = 0.0
            yield batch


def _num_bytes(batch: Batch) -> int:
    return batch.num_bytes
