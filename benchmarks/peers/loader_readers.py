"""LeRobot's and LanceDB's readers, and bare torchcodec, on given indices: runs in the peers' interpreter, a JSON order
per line. Each order names its action in `act`: open, read, hash or leave."""

import hashlib
import json
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from lerobot_lancedb import LanceDBDataset
from torch.utils.data import DataLoader
from torchcodec.decoders import VideoDecoder

ROOT = Path(__file__).parents[2]


class Bare:
    """The decoder alone: each camera's frames of a batch in ascending order, a thread per camera."""

    def __init__(self, files: Sequence[str]) -> None:
        self.decoders = [VideoDecoder(file, seek_mode="approximate") for file in files]
        self.pool = ThreadPoolExecutor(len(files))

    def __getitems__(self, indices: list[int]) -> list[Any]:
        ordered = sorted(indices)
        return list(self.pool.map(lambda decoder: decoder.get_frames_at(ordered).data, self.decoders))


def opened(reader: str, root: str, horizon: int) -> Any:
    """The best settings that each has: pictures as uint8 (no conversion to floats), torchcodec, its own caches."""
    if reader == "bare":
        return Bare(sorted(str(path) for path in Path(root).glob("videos/*/chunk-*/*.mp4")))
    fps = json.loads((Path(root) / "meta/info.json").read_text())["fps"]
    windows = {"action": [step / fps for step in range(horizon)]} if horizon else None
    if reader == "lancedb":
        return LanceDBDataset(root=Path(root), delta_timestamps=windows, return_uint8=True)
    return LeRobotDataset(
        f"local/{Path(root).name}",
        root=root,
        delta_timestamps=windows,
        video_backend="torchcodec",
        return_uint8=True,
    )


def items(batch: list[Any]) -> list[Any]:
    return batch


class Batches:
    """A list of batches that may be exchanged between passes, since workers live on."""

    def __init__(self) -> None:
        self.now: list[list[int]] = []

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.now)


class Reader:
    """One data set read in batches, in this process or by workers that live on between passes."""

    def __init__(self, reader: str, root: str, horizon: int, workers: int) -> None:
        self.data = opened(reader, root, horizon)
        self.by_batch = reader != "lerobot"  # it has items alone
        self.wanted = Batches()
        self.loader = (
            DataLoader(
                self.data,
                batch_sampler=self.wanted,
                num_workers=workers,
                collate_fn=items,
                persistent_workers=True,
                multiprocessing_context="spawn",
            )
            if workers
            else None
        )

    def __iter__(self) -> Iterator[list[Any]]:
        if self.loader is not None:
            yield from self.loader
            return
        for batch in self.wanted:
            yield self.data.__getitems__(batch) if self.by_batch else [self.data[index] for index in batch]

    def read(self, indices: Sequence[int], batch: int) -> dict[str, Any]:
        self.wanted.now = [list(indices[k : k + batch]) for k in range(0, len(indices), batch)]
        waits, started = [], time.perf_counter()
        last = started
        for _ in self:
            now = time.perf_counter()
            waits.append(now - last)
            last = now
        return {
            "seconds": last - started,
            "p50_s": float(np.quantile(waits, 0.5)),
            "p99_s": float(np.quantile(waits, 0.99)),
            "rss_mib": _rss_mib(),
        }

    def hash(self, indices: Sequence[int], image_size: int) -> str:
        """Of every item: names, types, shapes and bytes. image_size: pictures as preprocessing makes them; 0: as is."""
        whole = hashlib.sha256()
        for index in indices:
            whole.update(digest(self.data[int(index)], image_size))
        return whole.hexdigest()


def digest(item: dict[str, Any], image_size: int) -> bytes:
    from model_core.transforms import prepare_view  # `main` says where it is

    whole = hashlib.sha256()
    for key in sorted(item):
        value = item[key]
        if not torch.is_tensor(value):
            whole.update(f"{key} {value}".encode())
            continue
        array = value.numpy()
        if array.dtype == np.uint8:
            array = np.ascontiguousarray(array.transpose(1, 2, 0))
            array = prepare_view(array, {"image_size": image_size}) if image_size else array
        whole.update(f"{key} {array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return whole.digest()


def _rss_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def main() -> None:
    sys.path.insert(0, str(ROOT))
    torch.set_num_threads(1)
    reader: Reader | None = None
    for line in sys.stdin:
        order = json.loads(line)
        act = order.pop("act")
        if act == "open":
            reader = Reader(**order)
            answer: dict[str, Any] = {"rss_mib": _rss_mib()}
        else:
            assert reader is not None
            indices = np.load(order.pop("indices")).tolist()
            answer = reader.read(indices, **order) if act == "read" else {"hash": reader.hash(indices, **order)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
