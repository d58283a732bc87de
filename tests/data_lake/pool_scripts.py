"""What test_decode_pool sees: a cluster of two nodes with a core each makes batches for a process on a third, which has
none. Prints one line of JSON."""

import hashlib
import json
import shutil
import sys
import threading
import time
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.cluster_utils import Cluster

from data_lake.ahead import IN_FLIGHT_BYTES, THREADS, Ahead
from data_lake.cluster import joined
from data_lake.decode_pool import pool
from data_lake.loader import Loader
from data_lake.pack import pack_samples
from data_lake.packing import TokenCount
from data_lake.preprocess import preprocess_view
from data_lake.samples import Batch, SampleTable
from data_lake.specs import SpanShuffle
from data_lake.view import read_view
from errors import UserError
from tests.data_lake.lake_fixture import RECORDED, VIEWS, request_for, write_dataset, write_videos, write_view
from tests.data_lake.ray_scripts import STORE, _kill_one_at_work
from tests.waiting import eventually

TOKENS = TokenCount(tokens_per_view=4, state_tokens=1, action_horizon=8)
SHUFFLES = {"uniform": "uniform", "spans": SpanShuffle(length=4, window=3)}
STEPS, RESUMED = 8, 5
MIB = 1 << 20
SIZE = 96


def prepared(root: Path) -> None:
    """Samples of both tiers, and of a video tier whose views wait until a node has died. Of a size that makes batches
    too large for Ray to send along with its messages."""
    vector = write_dataset(root / "dataset", RECORDED, size=SIZE)
    write_view(root / "view", RECORDED, vector)
    size = {"image_size": SIZE}
    for name, request in {
        "decoded": request_for(inputs=size),
        "video": request_for(inputs=size, images="video"),
        "slow": request_for(
            images="video",
            inputs=size | {"folder": str(root)},
            functions=replace(request_for().functions, prepare_view="tests.data_lake.ray_scripts:slow_view"),
        ),
    }.items():
        (root / name).mkdir()
        preprocess_view(read_view(root / "view"), root / "dataset", request, root / name)


def loader_of(folder: Path, address: str, shuffle: Any = "uniform", max_bytes: int = IN_FLIGHT_BYTES) -> Loader:
    table = SampleTable(folder)
    words = np.array([len(RECORDED[episode].instruction.split()) for episode in table.column("episode_index")])
    lengths = TOKENS.length(table.column("num_views"), words)
    packing = pack_samples(np.arange(len(lengths)), lengths, capacity=64, tokens=TOKENS)
    packing = replace(packing, shuffle=shuffle)
    return Loader(folder, packing, seed=0, rows_per_step=2, max_bytes=max_bytes, ray_address=address)


def hashes(loader: Loader, first: int = 0, last: int = STEPS, rank: int = 0, world: int = 1) -> list[str]:
    return [digest(batch) for batch in loader.batches(first, last, rank, world)]


def digest(batch: Batch) -> str:
    found = hashlib.sha256(str(batch.step).encode())
    for array in astuple(batch)[1:]:
        found.update(f"{array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def died(root: Path, cluster: Cluster, nodes: list) -> dict:
    """The node that decodes the first batch is killed over it."""
    killed: list[str] = []
    killer = threading.Thread(target=_kill_one_at_work, args=(cluster, nodes, root, killed), daemon=True)
    killer.start()
    found = hashes(loader_of(root / "slow", cluster.address))
    killer.join()
    return {"killed": len(killed), "same": found == hashes(loader_of(root / "slow", "")), "num": len(found)}


def compared(root: Path, address: str) -> dict:
    """By what was asked for: whether the cluster gave what threads give, and how many batches."""
    told = {}
    for tier in ("decoded", "video"):
        for name, shuffle in SHUFFLES.items():
            here, there = (loader_of(root / tier, where, shuffle) for where in ("", address))
            whole = hashes(here)
            told[f"{tier} {name}"] = (hashes(there) == whole, len(whole))
            told[f"{tier} {name} resumed"] = (hashes(there, RESUMED) == whole[RESUMED:], STEPS - RESUMED)
    shares = [[hashes(each, 2, 5, rank, 2) for rank in range(2)] for each in (here, there)]
    return told | {"two ranks": (shares[0] == shares[1] and shares[0][0] != shares[0][1], len(shares[1][0]))}


def refused(root: Path, address: str) -> list:
    """The error of a video that is broken, and of what cannot be shared out: here, and from the cluster."""
    (root / "broken").mkdir()
    shutil.copytree(root / "video", root / "broken/video")
    keys = [f"observation.images.{view}" for view in VIEWS]
    write_videos(root / "broken/dataset/videos.lance", keys, [3, 3], [b"no video at all"] * 2)
    told = []
    for where in ("", address):
        for folder, ranks in ((root / "broken/video", {}), (root / "video", {"world": 9})):
            try:
                hashes(loader_of(folder, where), **ranks)
            except UserError as error:
                told.append(error.args)
    return told


def begun(folder: str, size: int, key: int) -> np.ndarray:
    (Path(folder) / str(key)).touch()
    return np.full(size, key, np.uint8)


def bounded(root: Path, address: str) -> dict:
    """30 values of 8 MiB under a bound of 32: how many were begun and not yet taken at most. In the end the stores
    hold none of them."""
    folder = root / "begun"
    folder.mkdir()
    makers = partial(pool, address, np.copy)
    most, right = 0, True
    ahead = Ahead(partial(begun, str(folder), 8 * MIB), lambda value: value.nbytes, 32 * MIB, makers)
    for taken, value in enumerate(ahead.over(range(30))):
        most = max(most, len(list(folder.iterdir())) - taken)
        right = right and bool((value == taken).all())
    del value
    eventually(lambda: stored() < 8 * MIB)
    return {"most": most, "right": right, "num": taken + 1}


def stored() -> float:
    """Bytes in the stores of all nodes."""
    return ray.cluster_resources()["object_store_memory"] - ray.available_resources()["object_store_memory"]


def stuck(folder: str, key: int) -> int:
    (Path(folder) / str(key)).touch()
    time.sleep(0 if key == 0 else 600)
    return key


def closed(root: Path, address: str) -> dict:
    """Left while cores are at work for ten minutes to come; another user of the cluster then finds them free, and fills
    the memory where a batch of before lay."""
    folder = root / "stuck"
    folder.mkdir()
    filling = partial(begun, str(root), 8 * MIB)
    held = list(Ahead(filling, lambda _: 1, makers=partial(pool, address, np.copy)).over(range(100, 104)))
    reading = Ahead(partial(stuck, str(folder)), lambda _: 1, makers=partial(pool, address, int)).over(range(99))
    next(reading)
    while len(list(folder.iterdir())) < 3:  # 0 is taken, 1 and 2 have the cores
        time.sleep(0.05)
    started = time.monotonic()
    reading.close()
    closed_s = time.monotonic() - started
    again = [int(v[0]) for v in Ahead(filling, lambda _: 1, makers=partial(pool, address, np.copy)).over(range(15))]
    free_s = time.monotonic() - started
    kept = [int(value.mean()) for value in held]
    threads = [thread.name for thread in threading.enumerate() if thread.name.startswith(THREADS)]
    left = {"threads": threads, "joined": ray.is_initialized()}
    return {"closed_s": closed_s, "again": again, "free_s": free_s, "kept": kept, "left": left}


def main(folder: str) -> dict:
    root = Path(folder)
    prepared(root)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **STORE})
    nodes = [cluster.add_node(num_cpus=1, memory=2 << 30, **STORE) for _ in range(2)]
    address = cluster.address
    with joined(address):  # once for all: workers begin with every new process that joins
        told = {scene.__name__: scene(root, address) for scene in (compared, refused, bounded)}
        told["died"] = died(root, cluster, nodes)
    cluster.add_node(num_cpus=1, memory=2 << 30, **STORE)
    told["closed"] = closed(root, address)
    cluster.shutdown()
    return told


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])), flush=True)
