"""Samples read from an object store that answers late, beside the same bytes in a folder, for `bench loader`.

Both tiers that are smaller than pixels, in either order of samples; all batches of both places are the same.
"""

import hashlib
import multiprocessing
import os
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from benchmarks.folder_store import folder_store
from benchmarks.loader_sets import Sets
from benchmarks.loader_tiers import Tier, lengths_of, prepare
from benchmarks.reporting import Target, spread
from data_lake.files import LakePath, lake_path
from data_lake.loader import Loader
from data_lake.pack import pack_samples
from data_lake.packing import Packing, TokenCount
from data_lake.samples import SampleTable, view_column
from data_lake.specs import SpanShuffle
from data_lake.video_reader import VideoReader
from data_lake.video_tier import video_columns

LATENCIES_S = (0.0, 0.03)  # the first tells what the server itself costs
TIERS: tuple[Tier, ...] = ("jpeg", "video")
BATCH, ROUNDS, IMAGE_SIZE = 32, 3, 224
STEPS: dict[Tier, int] = {"jpeg": 96, "video": 24}  # decoding takes longer
SHUFFLES: dict[str, Literal["uniform"] | SpanShuffle] = {
    "uniform": "uniform",
    "spans": SpanShuffle(length=16, window=2 * BATCH),
}
TOKENS = TokenCount(tokens_per_view=1, state_tokens=1, action_horizon=16)

Found = dict[str, list[dict[str, Any]]]
"""Of each tier and order, `jpeg_uniform` and so on, a dict per round."""


def remote_share(sets: Sets) -> tuple[Target, dict[str, Any], dict[str, Found]]:
    """The target, what is shown, and the raw samples by latency; samples are made in the lake of `sets`."""
    lake = sets.version.root.parents[1]
    assert isinstance(lake, Path)
    for tier in TIERS:
        _attempt(lake, tier).parent.mkdir(parents=True)
        prepare(sets, _attempt(lake, tier), IMAGE_SIZE, tier)
    runs: dict[str, Found] = {}
    for latency_s in LATENCIES_S:  # each in a process of its own: Lance remembers where a store was
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            runs[f"{latency_s:g}_s"] = pool.submit(measured, lake, latency_s).result()
    return *summed_up(runs), runs


def summed_up(runs: dict[str, Found]) -> tuple[Target, dict[str, Any]]:
    """The target, which is the lowest share at the last latency, and what is shown."""
    shown = {latency: {name: _shown(rounds) for name, rounds in found.items()} for latency, found in runs.items()}
    latency, late = list(shown.items())[-1]
    lowest = min(late, key=lambda name: late[name]["share"])
    note = f"{lowest.replace('_', ' tier, ')}; requests {latency.replace('_', ' ')} late"
    return Target(name="remote_share", value=late[lowest]["share"], target=0.8, op=">=", note=note), shown


def _attempt(lake: LakePath, tier: str) -> Any:
    return lake / "preprocess" / tier / "attempts/1"


def measured(lake: Path, latency_s: float, num_steps: int = 0, rounds: int = ROUNDS) -> Found:
    """Passes over the lake in the folder, and over the same files as objects, in turn. num_steps: of each, or STEPS."""
    found: Found = {}
    with folder_store(lake.parent, latency_s=latency_s) as (variables, passed):
        os.environ.update(variables)
        remote = lake_path(f"s3://{lake.name}")
        for tier in TIERS:
            steps = num_steps or STEPS[tier]
            for order, shuffle in SHUFFLES.items():
                here, there = (_loader(_attempt(place, tier), shuffle) for place in (lake, remote))
                assert _hash(here, steps) == _hash(there, steps), f"{tier}, {order}: not the same batches"
                useful = sum(_useful(here.table, np.concatenate(here.rows(step))) for step in range(steps))
                passes = found.setdefault(f"{tier}_{order}", [])
                for _ in range(rounds):
                    local = _timed(here, steps)
                    before = passed()
                    late = _timed(there, steps)
                    after = passed()
                    asked = {
                        "requests_per_batch": (after.num_requests - before.num_requests) / steps,
                        "bytes_per_useful_byte": (after.received - before.received) / useful,
                    }
                    passes.append({"local": local, "remote": late, "share": late["per_s"] / local["per_s"], **asked})
    return found


def _loader(folder: LakePath, shuffle: Literal["uniform"] | SpanShuffle) -> Loader:
    """A sample a row: all are equally long."""
    lengths = lengths_of(SampleTable(folder), TOKENS)
    packing: Packing = pack_samples(np.arange(len(lengths)), lengths, capacity=int(lengths.max()), tokens=TOKENS)
    return Loader(folder, replace(packing, shuffle=shuffle), seed=0, rows_per_step=BATCH)


def _timed(loader: Loader, steps: int) -> dict[str, Any]:
    """A pass from its first request on. waits_s: for each batch."""
    waits, last = list[float](), time.perf_counter()
    for _ in loader.batches(0, steps):
        now = time.perf_counter()
        waits.append(now - last)
        last = now
    return {"per_s": steps * BATCH / sum(waits), "waits_s": waits}


def _hash(loader: Loader, steps: int) -> str:
    """Of everything in all batches; opens what is opened once, too."""
    whole = hashlib.sha256()
    for batch in loader.batches(0, steps):
        for name in type(batch).__slots__:
            whole.update(np.ascontiguousarray(getattr(batch, name)).tobytes())
    return whole.hexdigest()


def _useful(table: Any, ids: np.ndarray) -> int:
    """Bytes of the pictures of these samples as they are stored, each once: JPEGs, or packets that must be decoded."""
    assert isinstance(table, SampleTable)
    rows = pa.array(np.unique(ids))
    if "video" not in table.card:
        columns = table.samples.take(rows, columns=[view_column(view) for view in table.views]).columns
        return sum(len(image) for column in columns for image in column.drop_null().to_pylist())
    video = table.card["video"]
    reader = VideoReader(str(Path(str(table.folder), video["videos"])), video["version"])
    rows_M, at_M = _places(table, rows)
    return sum(run.length for run in reader.runs(rows_M, at_M, video["fps"]))


def _places(table: SampleTable, rows: pa.Array) -> Iterator[np.ndarray]:
    """Rows of the videos' table, then seconds, of all pictures of these samples."""
    names = [video_columns(view) for view in table.views]
    found = table.samples.take(rows, columns=[name for pair in names for name in pair])
    return (np.concatenate([found[pair[place]].drop_null().to_numpy() for pair in names]) for place in range(2))


def _shown(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "share": statistics.median(each["share"] for each in rounds),
        "local_per_s": spread([each["local"]["per_s"] for each in rounds]),
        "remote_per_s": spread([each["remote"]["per_s"] for each in rounds]),
        "requests_per_batch": statistics.median(each["requests_per_batch"] for each in rounds),
        "bytes_per_useful_byte": statistics.median(each["bytes_per_useful_byte"] for each in rounds),
    }
