"""Batches of the video tier made by a Ray cluster of this machine's cores beside threads, for `bench loader`: what
processes and the way through shared memory cost, or gain, where both have the same cores."""

import hashlib
import multiprocessing
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.loader_sets import Sets
from benchmarks.loader_tiers import lengths_of, prepare
from benchmarks.reporting import spread
from data_lake.ahead import Ahead
from data_lake.cluster import joined
from data_lake.decode_pool import pool
from data_lake.loader import Loader
from data_lake.pack import pack_samples
from data_lake.packing import TokenCount
from data_lake.samples import SampleTable

ROUNDS, WARM, STEPS, SAMPLES, IMAGE_SIZE = 3, 6, 20, 32, 224
IN_FLIGHT = 64 << 20  # a quarter of the store of a cluster that begins here


def ray_pool(sets: Sets, folder: Path) -> dict[str, Any]:
    """Batches a second made by either, interleaved, of SAMPLES samples each; store: bytes a second of arrays that cost
    nothing to make, into Ray's memory and out of it. In a process of its own: Ray joins one cluster per process."""
    prepare(sets, folder, IMAGE_SIZE, "video")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as alone:
        return alone.submit(_measured, folder).result()


def _measured(folder: Path) -> dict[str, Any]:
    with joined(""):
        import ray

        address = ray.get_runtime_context().gcs_address
        loaders = {"threads": _loader(folder, ""), "ray_pool": _loader(folder, address)}
        (digest,) = {_digest(loader) for loader in loaders.values()}
        rates: dict[str, list[float]] = {name: [] for name in (*loaders, "store")}
        size = loaders["threads"].batch(0).num_bytes
        for _ in range(ROUNDS):
            for name, loader in loaders.items():
                rates[name].append(_per_s(loader.batches(0, WARM + STEPS)))
            copied = Ahead(partial(_ready, size), len, IN_FLIGHT, partial(pool, address, np.copy))
            rates["store"].append(size * _per_s(copied.over(range(WARM + STEPS))))
    pairs = zip(rates["ray_pool"], rates["threads"], strict=True)
    return {
        "batches_per_s": {name: spread(rates[name]) for name in loaders},
        "ray_pool_over_threads": statistics.median(ours / theirs for ours, theirs in pairs),
        "store_bytes_per_s": spread(rates["store"]),
        "batch_bytes": size,
        "digest": digest,
    }


def _loader(folder: Path, address: str) -> Loader:
    tokens = TokenCount(tokens_per_view=1, state_tokens=1, action_horizon=1)
    lengths = lengths_of(SampleTable(folder), tokens)
    packing = pack_samples(np.arange(len(lengths)), lengths, capacity=SAMPLES * int(lengths.max()), tokens=tokens)
    return Loader(folder, packing, seed=0, rows_per_step=1, max_bytes=IN_FLIGHT, ray_address=address)


def _digest(loader: Loader) -> str:
    found = hashlib.sha256()
    for batch in loader.batches(0, STEPS):
        for array in (batch.sample_ids, batch.images, batch.proprio, batch.actions):
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _per_s(values: Any) -> float:
    """Values a second, the first WARM left out."""
    for _ in islice(values, WARM):
        pass
    started = time.perf_counter()
    num = sum(1 for _ in values)
    return num / (time.perf_counter() - started)


@lru_cache(maxsize=1)
def _array(size: int) -> np.ndarray:
    return np.ones(size, np.uint8)


def _ready(size: int, _step: int) -> np.ndarray:
    return _array(size)
