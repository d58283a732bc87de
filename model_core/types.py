"""Values that cross model_core's seams, and the legend of the letters that end an array's name.

B batch · N samples · I images · V views · T packed tokens · X packed text tokens · S segments · D model width ·
H action horizon · A action dims · P proprio dims. Inside attention, shapes are T packed tokens, N heads,
K head dim; in the loss, K is noise draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:  # preprocessing imports this module in workers that need no torch
    import torch

    from model_core.policies.pi05.layout import PrefixLayout


@dataclass(frozen=True, kw_only=True, slots=True)
class Observation:
    """What a robot sees at one moment: `views` of uint8 RGB (height, width, 3) by slot name, `proprio` (P,) raw."""

    views: Mapping[str, np.ndarray]
    proprio: np.ndarray
    instruction: str


class SampleArrays(Protocol):
    """Samples as plain numpy arrays, in packed order; what the loader yields has these fields.

    images (I, S, S, 3) uint8: only views that exist, by sample, then by slot. image_sample, image_view (I,):
    whose, and which slot. text_tokens (X,) of all samples in a row, text_lengths (N,). proprio (N, P) raw.
    prefix_lengths (N,): tokens of views, text and state.
    """

    @property
    def sample_ids(self) -> np.ndarray: ...
    @property
    def images(self) -> np.ndarray: ...
    @property
    def image_sample(self) -> np.ndarray: ...
    @property
    def image_view(self) -> np.ndarray: ...
    @property
    def text_tokens(self) -> np.ndarray: ...
    @property
    def text_lengths(self) -> np.ndarray: ...
    @property
    def proprio(self) -> np.ndarray: ...
    @property
    def prefix_lengths(self) -> np.ndarray: ...


class ChunkArrays(SampleArrays, Protocol):
    """`SampleArrays` with what is to be predicted: actions (N, H, A) raw, action_mask (N, H) bool, False past
    the end of the episode."""

    @property
    def actions(self) -> np.ndarray: ...
    @property
    def action_mask(self) -> np.ndarray: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoded:
    """`SampleArrays` made from observations, for acting."""

    sample_ids: np.ndarray
    images: np.ndarray
    image_sample: np.ndarray
    image_view: np.ndarray
    text_tokens: np.ndarray
    text_lengths: np.ndarray
    proprio: np.ndarray
    prefix_lengths: np.ndarray


@dataclass(frozen=True, kw_only=True, slots=True)
class TorchBatch:
    """Samples as a policy takes them: normalised, on the device, arranged by length class.

    `layout` says how the packed prefix is put together and where its segments begin. Samples inside are
    sorted by class; `order` (N,) is each one's place in the loader's order, in which noise and losses stay.
    actions_NHA (normalised) and action_mask_NH are None when acting.
    """

    sample_ids: np.ndarray
    layout: PrefixLayout
    order: torch.Tensor
    images_IHWC: torch.Tensor
    image_view: torch.Tensor
    text_X: torch.Tensor
    proprio_NP: torch.Tensor
    actions_NHA: torch.Tensor | None = None
    action_mask_NH: torch.Tensor | None = None

    @property
    def num_samples(self) -> int:
        return len(self.sample_ids)
