"""The cached tier for `bench loader`: a data set's frames as preprocessing writes them, read by sample id."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.loader_sets import Sets
from data_lake.ahead import Ahead
from data_lake.frames import FrameReader
from data_lake.packing import TokenCount
from data_lake.preprocess import preprocess_view
from data_lake.request import Request
from data_lake.samples import Batch, SampleTable
from data_lake.view import read_view
from lookup import lookup
from model_core.embodiments import EMBODIMENTS, layout_of
from model_core.specs import InputSpec
from tasks.preprocess import FUNCTIONS


class CachedTier:
    """Samples of every frame at image_size, made once; sample i is frame i."""

    def __init__(self, sets: Sets, folder: Path, image_size: int, horizon: int) -> None:
        view = read_view(sets.version.root.parents[1] / "ingest" / sets.version.root.name)
        views = tuple(span.view for span in view.episodes[0].spans)
        inputs = InputSpec(views=views, image_size=image_size, state="token", tokenizer="words", max_text_tokens=16)
        request = Request(
            sample_stride=1,
            heldout_episodes=(),
            inputs=asdict(inputs) | {"views": list(views)},
            layout=layout_of(lookup(EMBODIMENTS, "metaworld_sawyer", "embodiment")),
            functions=FUNCTIONS,
            workers=2,
        )
        folder.mkdir()
        meant = replace(view, meaning=view.meaning | {"action_mode": "delta"})
        preprocess_view(meant, sets.version.root, request, folder)
        self.table = SampleTable(folder)
        self.tokens = TokenCount(tokens_per_view=1, state_tokens=1, action_horizon=horizon)
        self.image_size = image_size

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
