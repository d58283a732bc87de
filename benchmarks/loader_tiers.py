"""Samples as preprocessing writes them, for `bench loader`: the cached tier read by id, and training that waits for
samples of either tier."""

import hashlib
import json
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.loader_sets import Sets
from data_lake.ahead import Ahead
from data_lake.frames import FrameReader
from data_lake.pack import pack_samples
from data_lake.packing import TokenCount
from data_lake.preprocess import preprocess_view
from data_lake.request import Request
from data_lake.samples import Batch, SampleTable
from data_lake.view import read_view
from flows.recipes.tiny import RECIPE
from lookup import lookup
from model_core.embodiments import EMBODIMENTS, layout_of
from model_core.specs import InputSpec
from tasks.pack import token_count
from tasks.preprocess import FUNCTIONS
from tasks.waiting import waited

Tier = Literal["decoded", "jpeg", "video"]
TRAINED_STEPS, ROWS_PER_STEP = 24, 4


def prepare(sets: Sets, folder: Path, image_size: int, tier: Tier) -> InputSpec:
    """Write samples of every frame, all cameras, to `folder`; sample i is frame i."""
    view = read_view(sets.version.root.parents[1] / "ingest" / sets.version.root.name)
    views = tuple(span.view for span in view.episodes[0].spans)
    inputs = InputSpec(views=views, image_size=image_size, state="token", tokenizer="words", max_text_tokens=16)
    request = Request(
        sample_stride=1,
        heldout_episodes=(),
        inputs=asdict(inputs) | {"views": list(views)},
        layout=layout_of(lookup(EMBODIMENTS, "metaworld_sawyer", "embodiment")),
        functions=FUNCTIONS,
        images=tier,
    )
    folder.mkdir()
    meant = replace(view, meaning=view.meaning | {"action_mode": "delta"})
    preprocess_view(meant, sets.version.root, request, folder)
    return inputs


def lengths_of(table: SampleTable, tokens: TokenCount) -> np.ndarray:
    """Tokens of each sample (N,)."""
    words = np.array([len(text) for text in table.samples.to_table(columns=["text_tokens"])["text_tokens"]])
    return tokens.length(table.column("num_views"), words)


class CachedTier:
    """Samples of every frame at image_size, made once."""

    def __init__(self, sets: Sets, folder: Path, image_size: int, horizon: int) -> None:
        prepare(sets, folder, image_size, "decoded")
        self.table = SampleTable(folder)
        self.tokens = TokenCount(tokens_per_view=1, state_tokens=1, action_horizon=horizon)

    def batches(self, batches: Sequence[np.ndarray]) -> Iterator[Batch]:
        """A batch for each array of ids, read ahead as training does."""

        def make(number: int) -> Batch:
            return self.table.batch(number, [batches[number]], self.tokens)

        return Ahead(make, lambda batch: batch.num_bytes).over(range(len(batches)))

    def hash(self, order: np.ndarray, rows: FrameReader, digest: Callable[[dict[str, Any]], bytes]) -> str:
        """Of our samples put back into items: pixels, proprio and actions are the tier's own."""
        whole = hashlib.sha256()
        batch, frames = self.table.batch(0, [order], self.tokens), rows.batch(order)
        for n in range(len(order)):
            item: dict[str, Any] = {name: values[n] for name, values in frames.columns.items()}
            item |= {"observation.state": batch.proprio[n], "action": batch.actions[n]}
            item |= {"action_is_pad": ~batch.action_mask[n], "task": frames.tasks[n]}
            mine = batch.images[batch.image_sample == n]
            whole.update(digest(item | dict(zip(rows.cameras, mine, strict=True))))
        return whole.hexdigest()


def data_wait(sets: Sets, folder: Path, tier: Tier) -> dict[str, float]:
    """The tiny recipe's policy trained on this machine, in a process of its own: share of the time that steps waited
    for samples, the first step left out, and samples a second."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_trained, sets, folder, tier).result()


def _trained(sets: Sets, folder: Path, tier: Tier) -> dict[str, float]:
    from tasks.workers.training_run import run

    inputs = prepare(sets, folder, RECIPE.policy.inputs.image_size, tier)
    policy = replace(RECIPE.policy, inputs=inputs)
    table = SampleTable(folder)
    tokens = token_count(policy)
    lengths = lengths_of(table, tokens)
    for place in ("packed", "out"):
        (folder / place).mkdir()
    capacity = RECIPE.pack.tokens_per_row
    pack_samples(np.arange(len(lengths)), lengths, capacity=capacity, tokens=tokens).save(folder / "packed")
    train = replace(RECIPE.train, num_steps=TRAINED_STEPS, rows_per_step=ROWS_PER_STEP, checkpoint_every=TRAINED_STEPS)
    job: dict[str, Any] = {
        "train": asdict(train),
        "policy": json.loads(json.dumps(asdict(policy))),
        "output": str(folder / "out"),
        "earlier": [],
        "preprocessed": str(folder),
        "assets": str(folder),
        "packed": str(folder / "packed"),
        "threads": 1,
        "micro_batch_rows": ROWS_PER_STEP,
        "ray_address": "",
    }
    run(job, rank=0, world=1)
    lines = [json.loads(line) for line in (folder / "out/metrics.jsonl").read_text().splitlines()]
    waited_s, share = waited(lines)
    rates = [line["samples_per_s"] for line in lines[1:]]
    return {"waited_s": waited_s, "share": share, "samples_per_s": float(np.median(rates))}
