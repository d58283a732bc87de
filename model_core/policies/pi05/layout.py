"""How the packed prefix of a batch is put together: samples of one length class stand side by side.

Then the prefix is built, and met by the suffix, by slices and reshapes alone: no index operations, whose
backward passes are slow, and no loop over samples.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

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
        return cls(
            classes=classes, segments=Segments.of(lengths, device), positions_T=torch.from_numpy(positions).to(device)
        )

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
    groups, width = layout.classes, text_XD.shape[-1]
    views = views_ILD.split([group.num_samples * group.num_views for group in groups])
    texts = text_XD.split([group.num_samples * group.num_text for group in groups])
    states = [None] * len(groups) if state_ND is None else state_ND.split([group.num_samples for group in groups])
    parts = []
    for group, view, text, state in zip(groups, views, texts, states, strict=True):
        n = group.num_samples
        num_patches = group.num_views * group.tokens_per_view
        pieces = [view.reshape(n, num_patches, width), text.reshape(n, group.num_text, width)]
        parts.append(torch.cat(pieces if state is None else [*pieces, state[:, None]], dim=1).flatten(0, 1))
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def join(prefix: PrefixLayout, suffix: SuffixLayout, prefix_TC: Tensor, suffix_MHC: Tensor) -> Tensor:
    """Per draw its sample's prefix followed by its suffix, packed; the trailing dimensions stay as they are."""
    return Joined.apply(prefix, suffix, prefix_TC, suffix_MHC)


class Joined(torch.autograd.Function):
    """`join` without the copies that autograd's repeating, joining and splitting would make."""

    @staticmethod
    def forward(ctx: Any, prefix: PrefixLayout, suffix: SuffixLayout, prefix_TC: Tensor, suffix_MHC: Tensor) -> Tensor:
        ctx.layouts, ctx.shapes = (prefix, suffix), (prefix_TC.shape, suffix_MHC.shape)
        joined = prefix_TC.new_empty((suffix.joint.num_tokens, *prefix_TC.shape[1:]))
        for before, after, shared, own in _meeting_places(prefix, suffix, joined, prefix_TC, suffix_MHC):
            before.copy_(shared[:, None].expand_as(before))
            after.copy_(own)
        return joined

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[None, None, Tensor, Tensor]:
        grad = grads[0]
        to_prefix, to_suffix = (grad.new_empty(shape) for shape in ctx.shapes)
        prefix, suffix = ctx.layouts
        for before, after, shared, own in _meeting_places(prefix, suffix, grad, to_prefix, to_suffix):
            torch.sum(before, dim=1, out=shared)
            own.copy_(after)
        return None, None, to_prefix, to_suffix


def _meeting_places(
    prefix: PrefixLayout, suffix: SuffixLayout, joined: Tensor, prefix_TC: Tensor, suffix_MHC: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Per length class, as views: where prefixes and suffixes stand in `joined` (n, draws, L or H, ...), prefixes
    (n, L, ...) and suffixes (n, draws, H, ...) themselves."""
    draws, groups = suffix.num_draws, prefix.classes
    longer = [group.num_tokens + suffix.horizon for group in groups]
    places = joined.split([g.num_samples * draws * length for g, length in zip(groups, longer, strict=True)])
    shared = prefix_TC.split([group.num_samples * group.num_tokens for group in groups])
    own = suffix_MHC.split([group.num_samples * draws for group in groups])
    for group, length, place, before, after in zip(groups, longer, places, shared, own, strict=True):
        n = group.num_samples
        to_before, to_after = place.unflatten(0, (n, draws, length)).split([group.num_tokens, suffix.horizon], dim=2)
        yield to_before, to_after, before.unflatten(0, (n, group.num_tokens)), after.unflatten(0, (n, draws))
