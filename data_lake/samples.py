"""Read samples by id: two batched Lance takes make one `Batch` in packed order, boundaries included.

Opened lazily in the process that reads and dropped when pickled, since Lance does not survive a fork.
"""

import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from data_lake.files import LakePath, read_bytes
from data_lake.packing import TokenCount
from data_lake.pixels import copied_pixels, fresh_pixels
from data_lake.tiers import pixels
from data_lake.video_tier import VideoTier, video_columns
from errors import UserError

COLUMNS = ["first_step", "num_steps", "proprio", "text_tokens"]
CACHED_STEP_BYTES = 256 * 2**20  # action rows up to this size are kept in memory


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Batch:
    """N samples in packed order, row after row, as numpy. `cu_*` are the only authority on boundaries.

    sample_ids (N,) int64; row_of_sample (N,) int32. images (I, S, S, 3) uint8: only views that exist, ordered
    by sample, then by slot; image_sample, image_view (I,) int32: which sample, which slot. text_tokens (X,)
    int32, concatenated; text_lengths (N,) int32. proprio (N, P) float32, raw. actions (N, H, A) float32, raw:
    past the end of an episode the last one is repeated, and action_mask (N, H) bool is False. prefix_lengths
    (N,) int32: tokens of views, text and state. cu_prefix, cu_suffix (N + 1,) int32: running token counts.
    component (N,) int32: of a mixture, 0 where there is none. proprio_mask (N, P), action_dim_mask (N, A) bool: the
    dimensions that the sample's robot has; others are padding, 0, where a mixture holds wider robots.
    """

    step: int
    sample_ids: np.ndarray
    row_of_sample: np.ndarray
    images: np.ndarray
    image_sample: np.ndarray
    image_view: np.ndarray
    text_tokens: np.ndarray
    text_lengths: np.ndarray
    proprio: np.ndarray
    actions: np.ndarray
    action_mask: np.ndarray
    prefix_lengths: np.ndarray
    cu_prefix: np.ndarray
    cu_suffix: np.ndarray
    component: np.ndarray
    proprio_mask: np.ndarray
    action_dim_mask: np.ndarray

    @property
    def num_bytes(self) -> int:
        """Memory of its arrays, of which pictures are nearly all."""
        parts = (self.images, self.text_tokens, self.proprio, self.actions, self.action_mask)
        return sum(part.nbytes for part in parts)

    def copied(self) -> "Batch":
        """The same in memory of its own, which may be written to."""
        rest = deepcopy(replace(self, images=self.images[:0]))
        return replace(rest, images=copied_pixels(self.images))


def view_column(view: str) -> str:
    """The column of samples.lance that holds this view (Lance allows no dot in a name)."""
    return f"view_{view}"


def _fixed(column: pa.ChunkedArray) -> np.ndarray:
    """A fixed_size_list column as (N, D)."""
    array = column.combine_chunks()
    return array.flatten().to_numpy(zero_copy_only=False).reshape(len(array), array.type.list_size)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """One array, copied only where the column has several."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def running(lengths: np.ndarray) -> np.ndarray:
    """Boundaries (N + 1,) int32 of lengths (N,)."""
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)


class SampleTable:
    """The tables that preprocessing wrote, read by sample id (row number). threads: that decode videos, 0: one per
    core."""

    def __init__(self, folder: LakePath, threads: int = 0) -> None:
        self.folder = folder
        self.card: dict[str, Any] = json.loads(read_bytes(folder / "card.json"))
        self._video = VideoTier(folder, self.card, threads) if "video" in self.card else None
        self._samples: lance.LanceDataset | None = None
        self._steps: lance.LanceDataset | None = None
        self._cached_actions: np.ndarray | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_samples": None, "_steps": None, "_cached_actions": None}

    @property
    def views(self) -> list[str]:
        return list(self.card["inputs"]["views"])

    @property
    def samples(self) -> lance.LanceDataset:
        if self._samples is None:
            self._samples = lance.dataset(str(self.folder / "samples.lance"))
        return self._samples

    @property
    def steps(self) -> lance.LanceDataset:
        if self._steps is None:
            self._steps = lance.dataset(str(self.folder / "steps.lance"))
        return self._steps

    @property
    def num_samples(self) -> int:
        return self.samples.count_rows()

    def column(self, name: str) -> np.ndarray:
        """A whole numeric column of the samples (N,), such as `split` or `num_steps`."""
        return self.samples.to_table(columns=[name])[name].to_numpy()

    def step_columns(self, *names: str) -> list[np.ndarray]:
        """Whole columns of the control steps (T, D) float32, each step once: `action`, `proprio`."""
        table = self.steps.to_table(columns=list(names))
        return [_fixed(table[name]) for name in names]

    def ids(self, split: int) -> np.ndarray:
        """Sample ids (int64) of a split: 0 training, 1 held out."""
        return np.flatnonzero(self.column("split") == split)

    def batch(self, step: int, rows: Sequence[np.ndarray], tokens: TokenCount) -> Batch:
        """The samples of these rows (ids of each), in this order. `tokens` says how long prefix and suffix are."""
        ids = np.concatenate([*rows, np.empty(0, np.int64)]).astype(np.int64)
        unique, back_N = np.unique(ids, return_inverse=True)  # once each and ascending, which Lance reads fastest
        found = self.samples.take(unique.tolist(), columns=[*COLUMNS, *self._image_columns()])
        table = found.select(COLUMNS).take(pa.array(back_N))
        text = table["text_tokens"].combine_chunks()
        text_lengths = text.value_lengths().to_numpy(zero_copy_only=False).astype(np.int32)
        images, image_sample, image_view = (
            self._decoded(self._video, unique, found, back_N) if self._video else self._images(found, back_N)
        )
        first_N, left_N = table["first_step"].to_numpy(), table["num_steps"].to_numpy()
        actions, mask = self._chunks(first_N, left_N, tokens.action_horizon)
        num_views = np.bincount(image_sample, minlength=len(ids))
        prefix_lengths = tokens.prefix(num_views, text_lengths).astype(np.int32)
        proprio = _fixed(table["proprio"]).astype(np.float32)
        return Batch(
            step=step,
            sample_ids=ids,
            row_of_sample=np.repeat(np.arange(len(rows), dtype=np.int32), [len(row) for row in rows]),
            images=images,
            image_sample=image_sample,
            image_view=image_view,
            text_tokens=text.flatten().to_numpy(zero_copy_only=False).astype(np.int32),
            text_lengths=text_lengths,
            proprio=proprio,
            actions=actions,
            action_mask=mask,
            prefix_lengths=prefix_lengths,
            cu_prefix=running(prefix_lengths),
            cu_suffix=running(np.full(len(ids), tokens.action_horizon)),
            component=np.zeros(len(ids), np.int32),
            proprio_mask=np.ones(proprio.shape, bool),
            action_dim_mask=np.ones((len(ids), actions.shape[-1]), bool),
        )

    def _image_columns(self) -> list[str]:
        if self._video:
            return [name for view in self.views for name in video_columns(view)]
        return [view_column(view) for view in self.views]

    def _decoded(
        self, video: VideoTier, ids_U: np.ndarray, table: pa.Table, back_N: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As `_images`, from videos. A failure names the episode: that of the first sample which fails alone."""
        try:
            return video.images(table, back_N)
        except UserError:
            for place, sample in enumerate(ids_U.tolist()):
                try:
                    video.images(table.slice(place, 1), np.zeros(1, np.int64))
                except UserError as error:
                    told = self.samples.take([sample], columns=["episode_index", "frame_index"]).to_pylist()[0]
                    where = f"episode {told['episode_index']}, frame {told['frame_index']} · {error.where}"
                    raise UserError(error.code, error.message, where=where, next_step=error.next_step) from error
            raise

    def _images(self, table: pa.Table, back_N: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(I, S, S, 3) pixels with the sample and the slot of each, ordered by sample, then by slot; sample n is row
        back_N[n] of `table`. Each pixel is copied once."""
        size = self.card["inputs"]["image_size"]
        columns = [_whole(table[view_column(name)]) for name in self.views]
        present_UV = np.stack([column.is_valid().to_numpy(zero_copy_only=False) for column in columns], axis=1)
        present_NV, before_UV = present_UV[back_N], np.cumsum(present_UV, axis=0) - present_UV
        image_sample, image_view = np.nonzero(present_NV)
        images = fresh_pixels(len(image_sample), size, size, 3)
        for slot, column in enumerate(columns):
            found = pixels(column.drop_null(), self.card)
            if len(found) != np.count_nonzero(present_UV[:, slot]) * size * size * 3:
                raise UserError(
                    "LOAD-001",
                    f"an image of view {self.views[slot]!r} is not {size} x {size} RGB",
                    where=str(self.folder / "samples.lance"),
                    next_step="run with `--rebuild preprocess --why TEXT`",
                )
            place_N = before_UV[back_N[present_NV[:, slot]], slot]
            images[image_view == slot] = found.reshape(-1, size, size, 3)[place_N]
        return images, image_sample.astype(np.int32), image_view.astype(np.int32)

    def _chunks(self, first_N: np.ndarray, left_N: np.ndarray, horizon: int) -> tuple[np.ndarray, np.ndarray]:
        """Actions (N, H, A) and their mask (N, H): past the end of the episode the last one again, and False."""
        offsets_H = np.arange(horizon)
        mask = offsets_H[None, :] < left_N[:, None]
        steps_NH = first_N[:, None] + np.minimum(offsets_H[None, :], left_N[:, None] - 1)
        return self._actions(steps_NH), mask

    def _actions(self, steps_NH: np.ndarray) -> np.ndarray:
        if self._cached_actions is None and self.steps.count_rows() * self.card["action_dim"] * 4 <= CACHED_STEP_BYTES:
            self._cached_actions = _fixed(self.steps.to_table(columns=["action"])["action"])
        if self._cached_actions is not None:
            return self._cached_actions[steps_NH]
        unique, back = np.unique(steps_NH, return_inverse=True)
        return _fixed(self.steps.take(unique.tolist(), columns=["action"])["action"])[back.reshape(steps_NH.shape)]
