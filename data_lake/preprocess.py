"""Turn the episodes of a lake view into samples: images as the policy sees them, proprio, text tokens, actions.

Daft reads the frames at the view's version and decodes the images; the functions of the model come by dotted
name, so training, serving and this agree. Rows are in the order of the view's episodes, whoever decoded first.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from data_lake.card import HELD_OUT, TRAIN, make_card
from data_lake.files import LakePath
from data_lake.images import ImageJob, ImageSource, prepared_images
from data_lake.request import Request, check_request
from data_lake.samples import view_column
from data_lake.statistics import constant_dimensions
from data_lake.steps import Steps, fixed_lists, read_steps, write_steps
from data_lake.video_tier import VideoPlaces, video_fields
from data_lake.view import DatasetView, Span, ViewEpisode

AS_THEY_ARE = {"lance-encoding:compression": "none"}  # unpacking them took two thirds of the time to read a batch


@dataclass(frozen=True, kw_only=True, slots=True)
class Preprocessed:
    """What was made. marks: black images, rows that are not finite, dimensions of actions that never change."""

    num_samples: int
    num_heldout: int
    num_views: int
    num_steps: int
    marks: dict[str, int]


def preprocess_view(
    view: DatasetView,
    dataset: LakePath,
    request: Request,
    out: Path,
    report: Callable[[int, int], None] = lambda _done, _total: None,
) -> Preprocessed:
    """Write samples.lance, steps.lance and card.json to `out` from the tables of the data set at `dataset`.

    report: called with (episodes done, episodes). Raises UserError PREP-001 … -006 when the request does not
    fit the data, DECODE-… when a video does not hold what its episode needs.
    """
    check_request(view, request)
    steps = read_steps(view, dataset)
    splits = [HELD_OUT if e.source_episode in request.heldout_episodes else TRAIN for e in view.episodes]
    card = make_card(view, request, steps, splits, out)
    video = VideoPlaces(view, dataset, request, out) if request.images == "video" else None
    card |= {"video": video.card} if video else {}
    write_steps(steps, out / "steps.lance")
    samples = _Samples(view, dataset, request, steps, splits, card, out, video)
    schema = samples_schema(request.inputs["views"], card["proprio_dim"], request.images)
    fragments = []
    for table in samples.tables(schema, report):
        fragments += lance.fragment.write_fragments(table, str(out / "samples.lance"), schema=schema, mode="create")
    lance.LanceDataset.commit(str(out / "samples.lance"), lance.LanceOperation.Overwrite(schema, fragments))
    rows_TD = np.concatenate([steps.proprio_TP, steps.actions_TA], axis=1)
    marks = {
        **({} if video else {"black_images": samples.num_black}),  # nobody looked at the pictures of videos
        "not_finite_rows": int((~np.isfinite(rows_TD)).any(axis=1).sum()),
        "constant_action_dims": len(constant_dimensions(card["stats"]["action"])),
    }
    (out / "card.json").write_text(json.dumps(card | {"marks": marks}, indent=1) + "\n")
    return Preprocessed(
        num_samples=samples.num_samples,
        num_heldout=samples.num_heldout,
        num_views=samples.num_views,
        num_steps=len(rows_TD),
        marks=marks,
    )


def samples_schema(views: list[str], proprio_dim: int, images: str = "decoded") -> pa.Schema:
    """Columns of samples.lance. `first_step`: row of steps.lance; `num_steps`: control steps from there to the
    end of the episode; `view_<name>`: pixels of one image, null where the episode lacks the view; of videos, where
    it is (see `video_columns`)."""
    pixels = [pa.field(view_column(name), pa.large_binary(), metadata=AS_THEY_ARE) for name in views]
    return pa.schema(
        [
            pa.field("split", pa.int8()),
            pa.field("episode_index", pa.int32()),
            pa.field("source_episode", pa.int32()),
            pa.field("frame_index", pa.int32()),
            pa.field("task_index", pa.int32()),
            pa.field("first_step", pa.int64()),
            pa.field("num_steps", pa.int32()),
            pa.field("proprio", pa.list_(pa.float32(), proprio_dim)),
            pa.field("text_tokens", pa.list_(pa.int32())),
            pa.field("num_views", pa.int8()),
            *(video_fields(views) if images == "video" else pixels),
        ]
    )


class _Samples:
    """Makes the samples, some episodes at a time, and counts them."""

    def __init__(
        self,
        view: DatasetView,
        dataset: LakePath,
        request: Request,
        steps: Steps,
        splits: list[int],
        card: dict[str, Any],
        out: Path,
        video: VideoPlaces | None,
    ) -> None:
        self.view, self.request, self.steps, self.splits, self.card = view, request, steps, splits, card
        self.video = video
        self.source = ImageSource(
            videos_uri=str(dataset / "videos.lance"),
            videos_version=view.vector["videos"],
            colour_order=view.meaning["colour_order"],
            image_orientation=view.meaning["image_orientation"],
            prepare=request.functions.prepare_view,
            inputs=request.inputs,
        )
        self.text_tokens = partial(request.functions.get("text_tokens"), card=card, folder=out)
        self.num_samples = self.num_heldout = self.num_views = self.num_black = 0

    def tables(self, schema: pa.Schema, report: Callable[[int, int], None]) -> Iterator[pa.Table]:
        """Samples in the order of the view's episodes; memory is bounded by image_bytes, or one episode."""
        done = 0
        for group in self._groups():
            images = {} if self.video else self._images(group)
            yield pa.Table.from_batches([self._episode(number, images, schema) for number in group])
            done += len(group)
            report(done, len(self.view.episodes))

    def _frames(self, episode: ViewEpisode) -> range:
        return range(0, episode.length, self.request.sample_stride)

    def _groups(self) -> Iterator[list[int]]:
        """Positions of episodes, as many at a time as their images fit into image_bytes."""
        group, held = [], 0
        image_bytes = self.request.inputs["image_size"] ** 2 * 3 * len(self.request.inputs["views"])
        for number, episode in enumerate(self.view.episodes):
            needed = len(self._frames(episode)) * image_bytes
            if group and held + needed > self.request.image_bytes:
                yield group
                group, held = [], 0
            group.append(number)
            held += needed
        if group:
            yield group

    def _images(self, group: list[int]) -> dict[tuple[int, str], np.ndarray]:
        """(samples, S, S, 3) pixels by (position of the episode, view)."""
        jobs: dict[tuple[int, str], ImageJob] = {}
        for number in group:
            episode = self.view.episodes[number]
            for span in episode.spans:
                if span.view in self.request.inputs["views"]:
                    jobs[number, span.view] = self._job(episode, span)
        found = prepared_images(list(jobs.values()), self.source, self.request.workers)
        self.num_black += sum(images.num_black for images in found)
        return dict(zip(jobs, (images.pixels for images in found), strict=True))

    def _job(self, episode: ViewEpisode, span: Span) -> ImageJob:
        return ImageJob(
            episode_index=episode.episode_index,
            view=span.view,
            video_key=span.video_key,
            chunk_index=span.chunk_index,
            file_index=span.file_index,
            from_s=span.from_s,
            to_s=span.to_s,
            fps=self.view.meaning["fps"],
            wanted=tuple(self._frames(episode)),
        )

    def _tokens(self, instruction: str, proprio_NP: np.ndarray) -> list[list[int]]:
        """Token ids of each sample; without the state in the text they are those of the instruction."""
        if self.request.inputs["state"] == "text":
            return [self.text_tokens(instruction, proprio_P) for proprio_P in proprio_NP]
        return [self.text_tokens(instruction, None)] * len(proprio_NP)

    def _episode(self, number: int, images: dict[tuple[int, str], np.ndarray], schema: pa.Schema) -> pa.RecordBatch:
        """The samples of one episode."""
        episode, frames_N = self.view.episodes[number], np.array(self._frames(self.view.episodes[number]))
        first_N = self.steps.starts_E[number] + frames_N
        proprio_NP = self.steps.proprio_TP[first_N]
        views = self.request.inputs["views"]
        present = [span.view for span in episode.spans if span.view in views]
        count = len(frames_N)
        self.num_samples += count
        self.num_heldout += count * (self.splits[number] == HELD_OUT)
        self.num_views += count * len(present)
        columns: dict[str, Any] = {
            "split": np.full(count, self.splits[number]),
            "episode_index": np.full(count, episode.episode_index),
            "source_episode": np.full(count, episode.source_episode),
            "frame_index": frames_N,
            "task_index": np.full(count, self.card["instructions"].index(episode.instruction)),
            "first_step": first_N,
            "num_steps": episode.length - frames_N,
            "proprio": fixed_lists(proprio_NP),
            "text_tokens": self._tokens(episode.instruction, proprio_NP),
            "num_views": np.full(count, len(present)),
        }
        columns |= self.video.columns(episode, frames_N) if self.video else {}
        for name in () if self.video else views:
            pixels = [image.tobytes() for image in images[number, name]] if name in present else [None] * count
            columns[view_column(name)] = pixels
        arrays = [
            pa.array(columns[field.name], field.type) if field.name != "proprio" else columns["proprio"]
            for field in schema
        ]
        return pa.record_batch(arrays, schema=schema)
