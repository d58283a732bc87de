"""What one worker makes of one block: the content of its samples, its control steps, and marks of its episodes.

A block's description, put if absent when its files are on disk, says that it is finished; whoever died before leaves
files that nobody names. Workers share nothing but the lake, so they run in any process, on any node.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from data_lake.blocks import Block
from data_lake.files import LakePath, put_if_absent, sha256, sync
from data_lake.fragments import content_part, data_file, samples_schema, write_part
from data_lake.images import ImageSource, prepared_images
from data_lake.marks import Marks, marks_of
from data_lake.request import ModelFunctions, Request
from data_lake.samples import view_column
from data_lake.sealed import sealed
from data_lake.specs import CameraSlot
from data_lake.steps import Steps, fixed_lists, read_steps, steps_batch
from data_lake.tiers import VIDEO, Fidelity, as_json, kept
from data_lake.view import DatasetView, Span, ViewEpisode

BLOCKS, SAMPLES, STEPS = "blocks", "samples.lance", "steps.lance"


@dataclass(frozen=True, kw_only=True, slots=True)
class Workshop:
    """All that workers are told beside their block: where the data set is, what is asked for, where it goes."""

    dataset: str
    vector: dict[str, int]
    meaning: dict[str, Any]
    request: Request
    out: str

    def dumps(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def loads(cls, text: str) -> "Workshop":
        found = json.loads(text)
        request = found["request"]
        functions = ModelFunctions(**request["functions"])
        cameras = tuple(CameraSlot(**each) for each in request["cameras"])
        return cls(**{**found, "request": Request(**{**request, "functions": functions, "cameras": cameras})})

    @classmethod
    def of(cls, view: DatasetView, dataset: LakePath, request: Request, out: Path) -> "Workshop":
        return cls(dataset=str(dataset), vector=view.vector, meaning=view.meaning, request=request, out=str(out))

    def images(self) -> ImageSource:
        return ImageSource(
            videos_uri=f"{self.dataset}/videos.lance",
            videos_version=self.vector["videos"],
            colour_order=self.meaning["colour_order"],
            image_orientation=self.meaning["image_orientation"],
            fps=self.meaning["fps"],
            prepare=self.request.functions.prepare_view,
            inputs=self.request.inputs,
        )


def block_json(block: Block) -> str:
    """A block as text for another process."""
    return json.dumps(asdict(block))


def block_of(text: str) -> Block:
    found = json.loads(text)
    episodes = tuple(
        ViewEpisode(**{**episode, "spans": tuple(Span(**span) for span in episode["spans"])})
        for episode in found["episodes"]
    )
    return Block(**{**found, "episodes": episodes, "splits": tuple(found["splits"])})


def description(key: str) -> str:
    """The file that says what a block holds, below a stage's output."""
    return f"{BLOCKS}/{key}.json"


def prepare_block(workshop_json: str, block_text: str) -> None:
    """Make a block's files in the workshop's `out`, and its description last."""
    workshop, block = Workshop.loads(workshop_json), block_of(block_text)
    out = Path(workshop.out)
    found = read_steps(f"{workshop.dataset}/frames.lance", workshop.vector["frames"], block.episodes)
    batches = [steps_batch(steps) for steps in found]
    steps_part = write_part(iter(batches), batches[0].schema, out / STEPS)
    content = _Content(workshop, block, found)
    schema = content_part(
        samples_schema(workshop.request.inputs["views"], found[0].proprio_TP.shape[1], workshop.request.images)
    )
    samples_part = write_part(content.batches(schema), schema, out / SAMPLES)
    fps = workshop.meaning["fps"]
    marks = [
        marks_of(steps.proprio_TP, steps.actions_TA, fps, black)
        for steps, black in zip(found, content.num_black, strict=True)
    ]
    files = [f"{table}/data/{data_file(part)}" for table, part in ((STEPS, steps_part), (SAMPLES, samples_part))]
    for name in files:
        sync(out / name)
    told = {
        "samples": samples_part,
        "steps": steps_part,
        "num_samples": content.num_samples,
        "num_views": content.num_views,
        "action_dim": found[0].actions_TA.shape[1],
        "proprio_dim": found[0].proprio_TP.shape[1],
        "fidelity": as_json(content.fidelity),
        "marks": [each.as_json() for each in marks],
        "sha256": {name: sha256(out / name) for name in files},
    }
    put_if_absent(out / description(block.key), sealed(told))


def read_description(out: Path, key: str) -> dict[str, Any]:
    """What a finished block holds."""
    return json.loads((out / description(key)).read_bytes())


def marks_in(told: dict[str, Any]) -> list[Marks]:
    """Of each episode of a block."""
    return [
        Marks(**{**each, "still": tuple(map(tuple, each["still"])), "jumps": tuple(map(tuple, each["jumps"]))})
        for each in told["marks"]
    ]


class _Content:
    """The samples of a block as record batches of at most `image_bytes`, or of one sample; counts them on the way."""

    def __init__(self, workshop: Workshop, block: Block, steps: list[Steps]) -> None:
        self.request, self.block, self.steps = workshop.request, block, steps
        self.source = workshop.images()
        self.views: list[str] = self.request.inputs["views"]
        self.num_samples = self.num_views = 0
        self.num_black = [0] * len(block.episodes)
        self.fidelity = Fidelity()

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        sample_bytes = self.request.inputs["image_size"] ** 2 * 3 * len(self.views)
        at_a_time = max(1, self.request.image_bytes // sample_bytes)
        for number, episode in enumerate(self.block.episodes):
            frames = range(0, episode.length, self.request.sample_stride)
            spans = {span.view: span for span in episode.spans if span.view in self.views}
            images = {
                view: prepared_images(self.source, span, frames, episode.episode_index)
                for view, span in spans.items()
                if self.request.images != VIDEO
            }
            for start in range(0, len(frames), at_a_time):
                some_N = np.array(frames[start : start + at_a_time])
                columns: dict[str, Any] = {
                    "frame_index": some_N,
                    "num_steps": episode.length - some_N,
                    "proprio": fixed_lists(self.steps[number].proprio_TP[some_N]),
                    "num_views": np.full(len(some_N), len(spans)),
                }
                for view in () if self.request.images == VIDEO else self.views:
                    columns[view_column(view)] = (
                        self._kept(number, images[view], len(some_N)) if view in images else [None] * len(some_N)
                    )
                self.num_samples += len(some_N)
                self.num_views += len(some_N) * len(spans)
                arrays = [
                    columns["proprio"] if field.name == "proprio" else pa.array(columns[field.name], field.type)
                    for field in schema
                ]
                yield pa.record_batch(arrays, schema=schema)
            for each in images.values():
                each.close()

    def _kept(self, number: int, images: Iterator[tuple[np.ndarray, bool]], count: int) -> list[bytes]:
        """The next `count` images of a view, as the tier keeps them."""
        taken = [next(images) for _ in range(count)]
        self.num_black[number] += sum(black for _, black in taken)
        contents, fidelity = kept(np.stack([image for image, _ in taken]), self.request.images)
        self.fidelity = self.fidelity.merged([fidelity])
        return contents
