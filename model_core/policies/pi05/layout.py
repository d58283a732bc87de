"""How the packed prefix of a batch is put together: samples of one length class stand side by side.

Then the prefix is built, and met by the suffix, by slices and reshapes alone: no index operations, whose
backward passes are slow, and no loop over samples.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from model_core.attention.segments import Segments


@dataclass(frozen=True, kw_only=True, slots=True)
class LengthClass:
    """`num_samples` neighbours with as many views, text tokens and state tokens (0 or 1) each."""

    num_samples: int
    num_views: int
    num_text: int
    num_state: int
    tokens_per_view: int

    @property
    def num_tokens(self) -> int:
        """Prefix tokens of one sample."""
        return self.num_views * self.tokens_per_view + self.num_text + self.num_state


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PrefixLayout:
    """Length classes in packed order, boundaries of the prefix segments, and each token's place in its segment."""

    classes: tuple[LengthClass, ...]
    segments: Segments
    positions_T: Tensor

    @classmethod
    def of(cls, classes: tuple[LengthClass, ...], device: torch.device | str = "cpu") -> Self:
        lengths = np.repeat([c.num_tokens for c in classes], [c.num_samples for c in classes]).astype(np.int64)
        places = [np.tile(np.arange(c.num_tokens), c.num_samples) for c in classes]
        positions = np.concatenate([np.zeros(0, np.int64), *places])
        return cls(classes=classes, segments=Segments.of(lengths, device),
                   positions_T=torch.from_numpy(positions).to(device))

    @property
    def num_samples(self) -> int:
        return len(self.segments.lengths)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SuffixLayout:
    """The suffix of `num_draws` draws per sample: each draw is a segment of its own that sees its sample's prefix.

    `segments` of the suffix alone, `joint` of prefix and suffix. positions_MH go on where the prefix ends.
    """

    num_draws: int
    horizon: int
    segments: Segments
    joint: Segments
    positions_MH: Tensor

    @classmethod
    def of(cls, prefix: PrefixLayout, num_draws: int, horizon: int) -> Self:
        device = prefix.segments.cu.device
        before = np.repeat(np.asarray(prefix.segments.lengths, np.int64), num_draws)
        positions = before[:, None] + np.arange(horizon)
        return cls(
            num_draws=num_draws,
            horizon=horizon,
            segments=Segments.of(np.full(len(before), horizon), device),
            joint=Segments.of(before + horizon, device),
            positions_MH=torch.from_numpy(positions).to(device),
        )


def assemble_prefix(layout: PrefixLayout, views_ILD: Tensor, text_XD: Tensor, state_ND: Tensor | None) -> Tensor:
    """The packed prefix (T, D): of each sample its views in slot order, its text, its state token."""
    parts = []
    image_at = text_at = sample_at = 0
    for group in layout.classes:
        n, width = group.num_samples, text_XD.shape[-1]
        image_end, text_end, sample_end = image_at + n * group.num_views, text_at + n * group.num_text, sample_at + n
        pieces = [views_ILD[image_at:image_end].reshape(n, group.num_views * group.tokens_per_view, width),
                  text_XD[text_at:text_end].reshape(n, group.num_text, width)]
        if state_ND is not None:
            pieces.append(state_ND[sample_at:sample_end, None])
        parts.append(torch.cat(pieces, dim=1).flatten(0, 1))
        image_at, text_at, sample_at = image_end, text_end, sample_end
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def join(prefix: PrefixLayout, suffix: SuffixLayout, prefix_TC: Tensor, suffix_MHC: Tensor) -> Tensor:
    """Per draw its sample's prefix followed by its suffix, packed; the trailing dimensions stay as they are."""
    parts = []
    token_at = draw_at = 0
    trailing = prefix_TC.shape[1:]
    for group in prefix.classes:
        n, length = group.num_samples, group.num_tokens
        token_end, draw_end = token_at + n * length, draw_at + n * suffix.num_draws
        shared = prefix_TC[token_at:token_end].reshape(n, 1, length, *trailing)
        own = suffix_MHC[draw_at:draw_end].unflatten(0, (n, suffix.num_draws))
        shared = shared.expand(n, suffix.num_draws, length, *trailing)
        parts.append(torch.cat([shared, own], dim=2).flatten(0, 2))
        token_at, draw_at = token_end, draw_end
    return parts[0] if len(parts) == 1 else torch.cat(parts)
