"""What to build in the lake, as frozen values. Standard library only, so that a recipe validates at once.

A field marked `label` is outside identity; one marked `neutral` is left out of it while at its default,
so that adding it rebuilds nothing.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

LABEL = {"label": True}
NEUTRAL = {"neutral": True}


class Spec:
    """Unknown fields are refused at every level when a recipe is parsed."""

    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestSpec(Spec):
    """Where episodes come from and what the files do not say of themselves.

    dataset: name of the lake data set (a label).
    source: folder to read; None: what `collect` recorded. A label: the files enter identity by their digest.
    format: a name in SOURCES, or `auto` to tell by layout and version.
    embodiment: a name in EMBODIMENTS; its layout is checked against the data.
    ignore_tasks: pseudo-instructions that are marks, not language (GR00T's "valid").
    """

    dataset: str = field(metadata=LABEL)
    source: str | None = field(default=None, metadata=LABEL)
    format: str = "auto"
    embodiment: str
    ignore_tasks: tuple[str, ...] = ()
    colour_order: Literal["rgb", "bgr"] = "rgb"
    image_orientation: Literal["upright", "upside_down"] = "upright"
    action_mode: Literal["absolute", "delta"] = "absolute"


@dataclass(frozen=True, kw_only=True, slots=True)
class PreprocessSpec(Spec):
    """sample_stride: a sample starts at every n-th frame. heldout_episodes: source episodes kept from
    training and statistics, used for open-loop errors."""

    sample_stride: int = 1
    heldout_episodes: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PackSpec(Spec):
    """tokens_per_row: capacity of a packed row."""

    tokens_per_row: int
