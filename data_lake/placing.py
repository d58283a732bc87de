"""The columns of samples that depend on the whole view: split, numbers, task, first step and text tokens."""

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from data_lake.blocks import Block
from data_lake.prepare import STEPS
from data_lake.request import Request
from data_lake.steps import steps_of_rows
from data_lake.video_tier import VideoPlaces


class Placing:
    """Gives each block's samples their places, and counts them. schema: the columns of it that are asked for.

    video: where pictures are, for the tier that keeps none. first_step: of the first block; blocks are asked for in
    the order of the view.
    """

    def __init__(
        self, request: Request, card: dict[str, Any], out: Path, schema: pa.Schema, video: VideoPlaces | None = None
    ) -> None:
        self.request, self.out, self.schema, self.video = request, out, schema, video
        self.first_step = 0
        self._task_of = {text: number for number, text in enumerate(card["instructions"])}
        self._text_tokens = partial(request.functions.get("text_tokens"), card=card, folder=out)
        self._tokens_of = cache(lambda instruction: self._text_tokens(instruction, None))

    def batch(self, block: Block) -> pa.RecordBatch:
        """The next block's rows."""
        episodes = block.episodes
        frames = [np.arange(0, episode.length, self.request.sample_stride) for episode in episodes]
        starts_E = self.first_step + np.cumsum([0, *(episode.length for episode in episodes)])
        counts_E = [len(frames_N) for frames_N in frames]
        columns: dict[str, Any] = {
            "split": np.repeat(block.splits, counts_E),
            "episode_index": np.repeat([episode.episode_index for episode in episodes], counts_E),
            "source_episode": np.repeat([episode.source_episode for episode in episodes], counts_E),
            "task_index": np.repeat([self._task_of[episode.instruction] for episode in episodes], counts_E),
            "first_step": np.repeat(starts_E[:-1], counts_E) + np.concatenate(frames),
            "text_tokens": self._tokens(block, frames),
        }
        if self.video is not None:
            found = [self.video.columns(episode, frames_N) for episode, frames_N in zip(episodes, frames, strict=True)]
            columns |= {name: np.concatenate([each[name] for each in found]) for name in found[0]}
        self.first_step = int(starts_E[-1])
        return pa.record_batch([pa.array(columns[field.name], field.type) for field in self.schema], self.schema)

    def _tokens(self, block: Block, frames: Sequence[np.ndarray]) -> list[list[int]]:
        """Token ids of each sample; without the state in the text they are those of the instruction."""
        pairs = list(zip(block.episodes, frames, strict=True))
        if self.request.inputs["state"] != "text":
            return [tokens for e, frames_N in pairs for tokens in [self._tokens_of(e.instruction)] * len(frames_N)]
        lengths = [episode.length for episode in block.episodes]
        steps = steps_of_rows(str(self.out / STEPS), self.first_step, lengths)
        return [
            self._text_tokens(episode.instruction, proprio_P)
            for (episode, frames_N), each in zip(pairs, steps, strict=True)
            for proprio_P in each.proprio_TP[frames_N]
        ]
