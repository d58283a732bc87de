"""Reading training samples in random order: LeRobot's and LanceDB's readers beside ours, on the same indices.

Two AV1 cameras as LeRobot writes them. Every item's hash is equal; passes are interleaved; each contender has its
best settings, and two threads or processes. The large set is read with its files' memory emptied all the while.
"""

import hashlib
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.loader_costs import cores_for_gpus, emptied, rss_mib
from benchmarks.loader_pool import ray_pool
from benchmarks.loader_remote import remote_share
from benchmarks.loader_sets import Sets, large_set, small_set, without_cameras
from benchmarks.loader_tiers import CachedTier, data_wait
from benchmarks.peer import MAKE_IT, Peer, peers_python
from benchmarks.reporting import Target, result, spread
from data_lake.ahead import Ahead
from data_lake.frames import FrameReader, Frames
from data_lake.version import DatasetVersion

PACKAGES = ("pylance", "av", "numpy")
BATCH, HORIZON, ROUNDS, IMAGE_SIZE = 32, 16, 5, 224
LARGE_BYTES, LARGE_READ = 320 << 20, 2048
THREADS = 2
PASSES = 10  # for the growth of memory
SCRIPT = "loader_readers.py"
SETTINGS = {"lerobot": (0, 2), "lancedb": (0, 2), "bare": (0,)}  # workers that each is tried with


def main(lake: Path, home: Path) -> dict[str, Any]:
    """`bench loader`."""
    python = peers_python()
    with tempfile.TemporaryDirectory(dir=home if home.is_dir() else None) as folder:
        place = Path(folder)
        small = small_set(place)
        runs = {"small": _video(small, python, np.random.default_rng(0).permutation(254), place, SETTINGS)}
        states = _state_only(small, python, place)
        cached = _cached(small, python, place)
        growth = _growth(small.version)
        waits = {
            "decoded": data_wait(small, place / "decoded", "decoded"),
            "video": data_wait(small, place / "video", "video"),
        }
        pooled = ray_pool(small, place / "pool")
        cores = cores_for_gpus(place)
        far, far_shown, far_runs = remote_share(small)
        large = large_set(place, LARGE_BYTES)
        order = np.random.default_rng(1).permutation(large.version.manifest.num_frames)[:LARGE_READ]
        fewer = {"lerobot": (0,), "lancedb": (0,)}
        with emptied(large.files):
            runs["large"] = _video(large, python, order, place, fewer, rounds=2)
    targets = [*_targets(runs, states, cached, growth, waits["decoded"]["share"]), far]
    samples = {**runs, "state_only": states, "cached": cached}
    shown = {name: _shown(run) for name, run in samples.items()}
    shown |= {"training": waits, "ray_pool": pooled, "eight_gpus": cores, "object_store": far_shown}
    return result("loader", targets, shown, samples | {"object_store": far_runs}, PACKAGES)


Samples = dict[str, list[dict[str, Any]]]


class Ours:
    """Our reader, asked as the peers are. opens_per_sample: decoders made since it began, over samples read."""

    def __init__(self, version: DatasetVersion, cameras: Sequence[str] | None = None) -> None:
        self.frames = FrameReader(version, horizon=HORIZON, cameras=cameras, threads=THREADS)
        self.num_read = 0

    def read(self, indices: np.ndarray) -> dict[str, Any]:
        batches = np.split(indices, range(BATCH, len(indices), BATCH))
        timed = _timed(Ahead(lambda k: self.frames.batch(batches[k]), _num_bytes).over(range(len(batches))))
        self.num_read += len(indices)
        return timed | {"opens_per_sample": self.frames.videos.decoders.num_opened / self.num_read}

    def hash(self, indices: np.ndarray) -> str:
        """As the peers' script makes it of LeRobot's items."""
        whole = hashlib.sha256()
        for start in range(0, len(indices), BATCH):
            for item in _items(self.frames.batch(indices[start : start + BATCH])):
                whole.update(item_digest(item))
        return whole.hexdigest()


def _items(frames: Frames) -> Iterator[dict[str, Any]]:
    for n in range(len(frames.index_N)):
        item: dict[str, Any] = {name: rows[n] for name, rows in frames.columns.items()}
        item |= {name: rows[n] for name, rows in frames.images.items()}
        yield item | {"action_is_pad": ~frames.mask_NH[n], "task": frames.tasks[n]}


def item_digest(item: dict[str, Any]) -> bytes:
    whole = hashlib.sha256()
    for key in sorted(item):
        value = item[key]
        if isinstance(value, str):
            whole.update(f"{key} {value}".encode())
            continue
        array = np.asarray(value)
        whole.update(f"{key} {array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return whole.digest()


def _num_bytes(frames: Frames) -> int:
    return sum(images.nbytes for images in frames.images.values())


def _timed(batches: Iterator[Any]) -> dict[str, Any]:
    waits, started = list[float](), time.perf_counter()
    last = started
    for _ in batches:
        now = time.perf_counter()
        waits.append(now - last)
        last = now
    p50, p99 = np.quantile(waits, (0.5, 0.99)).tolist()
    return {"seconds": last - started, "p50_s": p50, "p99_s": p99, "rss_mib": rss_mib()}


def _video(
    sets: Sets,
    python: Path | None,
    order: np.ndarray,
    place: Path,
    settings: dict[str, tuple[int, ...]],
    rounds: int = ROUNDS,
) -> Samples:
    """Passes of every contender; the first of each warms up and is left out."""
    np.save(place / "order.npy", order)
    told = {"indices": str(place / "order.npy")}
    ours = Ours(sets.version)
    with ExitStack() as stack:
        contenders: dict[str, Callable[[], dict[str, Any]]] = {"vlaloop": lambda: ours.read(order)}
        hashes = {"vlaloop": ours.hash(order)}
        for reader, workers in ((r, w) for r, each in settings.items() for w in each):
            if python is None:
                break
            peer = stack.enter_context(Peer(python, SCRIPT))
            root = sets.lance if reader == "lancedb" else sets.lerobot
            peer.ask(act="open", reader=reader, root=str(root), horizon=HORIZON, workers=workers)
            name = f"{reader}_{workers}_workers"
            contenders[name] = lambda peer=peer: peer.ask(act="read", batch=BATCH, **told)
            if reader != "bare" and not workers:
                hashes[name] = peer.ask(act="hash", image_size=0, **told)["hash"]
        samples = _interleaved(contenders, rounds, len(order))
    assert len(set(hashes.values())) == 1, hashes
    return samples


def _interleaved(contenders: dict[str, Callable[[], dict[str, Any]]], rounds: int, number: int) -> Samples:
    samples: Samples = {name: [] for name in contenders}
    for _ in range(rounds + 1):
        for name, contender in contenders.items():
            found = contender()
            samples[name].append(found | {"per_s": number / found["seconds"]})
    return {name: runs[1:] for name, runs in samples.items()}


def _state_only(sets: Sets, python: Path | None, place: Path) -> Samples:
    """State, action, chunk of 16; theirs on a folder without cameras, which spares it the decoding."""
    order = np.random.default_rng(2).permutation(254)
    np.save(place / "states.npy", order)
    root = without_cameras(sets.lerobot, place / "states")
    ours = Ours(sets.version, cameras=())
    with ExitStack() as stack:
        contenders: dict[str, Callable[[], dict[str, Any]]] = {"vlaloop": lambda: ours.read(order)}
        hashes = {"vlaloop": ours.hash(order)}
        if python is not None:
            peer = stack.enter_context(Peer(python, SCRIPT))
            told = {"indices": str(place / "states.npy")}
            peer.ask(act="open", reader="lerobot", root=str(root), horizon=HORIZON, workers=0)
            hashes["lerobot"] = peer.ask(act="hash", image_size=0, **told)["hash"]
            contenders["lerobot_0_workers"] = lambda: peer.ask(act="read", batch=BATCH, **told)
        samples = _interleaved(contenders, ROUNDS, len(order))
    assert len(set(hashes.values())) == 1, hashes
    return samples


def _cached(sets: Sets, python: Path | None, place: Path) -> Samples:
    """Prepared samples at 224 x 224 beside LeRobot's undecoded ones, which it must still resize (not counted)."""
    order = np.random.default_rng(3).permutation(254)
    np.save(place / "cached.npy", order)
    ours = CachedTier(sets, place / "cached", IMAGE_SIZE, HORIZON)
    with ExitStack() as stack:
        batches = np.split(order, range(BATCH, len(order), BATCH))
        contenders: dict[str, Callable[[], dict[str, Any]]] = {"vlaloop": lambda: _timed(ours.batches(batches))}
        if python is not None:
            told = {"indices": str(place / "cached.npy")}
            peer = stack.enter_context(Peer(python, SCRIPT))
            peer.ask(act="open", reader="lerobot", root=str(sets.lerobot), horizon=HORIZON, workers=0)
            hashed = peer.ask(act="hash", image_size=IMAGE_SIZE, **told)["hash"]
            assert hashed == ours.hash(order, Ours(sets.version).frames, item_digest)
            contenders["lerobot_0_workers"] = lambda: peer.ask(act="read", batch=BATCH, **told)
        return _interleaved(contenders, ROUNDS, len(order))


def _growth(version: DatasetVersion) -> float:
    """Memory after 10 passes over that after two, less one, in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        seen = pool.submit(_passes, version).result()
    return seen[-1] / seen[1] - 1


def _passes(version: DatasetVersion) -> list[float]:
    ours, order = Ours(version), np.random.default_rng(4).permutation(version.manifest.num_frames)
    return [ours.read(order)["rss_mib"] for _ in range(PASSES + 2)]


def _median(runs: list[dict[str, Any]]) -> float:
    return statistics.median(run["per_s"] for run in runs)


def _ratio(samples: Samples, reader: str) -> float | None:
    """Our rate over the reader's at its best setting: the median of the rounds, each against the pass beside it."""
    theirs = max((runs for name, runs in samples.items() if name.startswith(reader)), key=_median, default=None)
    if theirs is None:
        return None
    return statistics.median(
        ours["per_s"] / other["per_s"] for ours, other in zip(samples["vlaloop"], theirs, strict=True)
    )


def _targets(runs: dict[str, Samples], states: Samples, cached: Samples, growth: float, wait: float) -> list[Target]:
    note = "" if len(states) > 1 else MAKE_IT
    asked = [
        ("video_tier_vs_lerobot", _ratio(runs["small"], "lerobot"), 2.2),
        ("video_tier_vs_lancedb", _ratio(runs["small"], "lancedb"), 1.25),
        ("video_tier_share_of_floor", _ratio(runs["small"], "bare"), 0.85),
        ("large_video_tier_vs_lerobot", _ratio(runs["large"], "lerobot"), 2.2),
        ("large_video_tier_vs_lancedb", _ratio(runs["large"], "lancedb"), 1.25),
        ("cached_tier_vs_lerobot", _ratio(cached, "lerobot"), 10),
        ("state_only_vs_lerobot", _ratio(states, "lerobot"), 20),
    ]
    found = [Target(name=name, value=value, target=bar, op=">=", note=note) for name, value, bar in asked]
    found.append(Target(name="rss_growth", value=growth, target=0.05, op="<=", note=f"{PASSES} passes"))
    trained = "the tiny recipe's policy on the decoded tier"
    return [*found, Target(name="data_wait", value=wait, target=0.05, op="<=", note=trained)]


def _shown(samples: Samples) -> dict[str, Any]:
    return {
        name: {
            "samples_per_s": spread([run["per_s"] for run in runs]),
            "p50_s": statistics.median(run["p50_s"] for run in runs),
            "p99_s": statistics.median(run["p99_s"] for run in runs),
            "rss_mib": runs[-1]["rss_mib"],
            **{key: runs[-1][key] for key in ("opens_per_sample",) if key in runs[-1]},
        }
        for name, runs in samples.items()
    }
