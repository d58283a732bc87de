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
class GripperSpec(Spec):
    """How a source writes one gripper: its values when open and when closed. In the lake 1 is open, 0 closed.

    column: `state` or `action`. dim: its place in that vector.
    """

    column: Literal["state", "action"]
    dim: int
    open: float
    closed: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadSpec(Spec):
    """What the files of a source do not say of themselves. None or empty: as its format says; where the format
    does not, reading stops and asks for the field by name.

    fps: rate of the rows: 5, or a rational such as "30000/1001".
    state, action: paths of columns (HDF5, RLDS) or topic fields (bags), concatenated in this order.
    views: view name to the path of its pictures, or its topic.
    instruction: path of the words, or the words themselves after "=".
    ignore_tasks: pseudo-instructions that are marks, not language (GR00T's "valid").
    clock: of bags, time of the message's header or of its reception. max_age_s: how old a resampled value may be.
    gaps: where values are older, cut the recording into episodes, or keep it and mark the rows.
    only_success: leave out demonstrations that say of themselves that they failed.
    """

    fps: str | int | float | None = None
    state: tuple[str, ...] = ()
    action: tuple[str, ...] = ()
    views: dict[str, str] = field(default_factory=dict)
    instruction: str | None = None
    ignore_tasks: tuple[str, ...] = ()
    colour_order: Literal["rgb", "bgr"] | None = None
    image_orientation: Literal["upright", "upside_down", "flipped"] | None = None
    action_mode: Literal["absolute", "delta"] | None = None
    grippers: tuple[GripperSpec, ...] = ()
    clock: Literal["header", "log"] | None = None
    max_age_s: float | None = None
    gaps: Literal["cut", "mark"] = "cut"
    only_success: bool = True


AS_THE_SOURCE_SAYS = ReadSpec()


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestSpec(Spec):
    """Where episodes come from.

    dataset: name of the lake data set (a label).
    source: folder or file to read; None: what `collect` recorded. A label: files enter identity by their digest.
    format: a name in SOURCES, or `auto` to tell by layout and version.
    embodiment: a name in EMBODIMENTS; its layout is checked against the data.
    """

    dataset: str = field(metadata=LABEL)
    source: str | None = field(default=None, metadata=LABEL)
    format: str = "auto"
    embodiment: str
    read: ReadSpec = AS_THE_SOURCE_SAYS


@dataclass(frozen=True, kw_only=True, slots=True)
class PreprocessSpec(Spec):
    """sample_stride: a sample starts at every n-th frame. heldout_episodes: source episodes kept from
    training and statistics, used for open-loop errors. images: kept as their pixels, or as JPEG, whose fidelity
    the card states."""

    sample_stride: int = 1
    heldout_episodes: tuple[int, ...] = ()
    images: Literal["decoded", "jpeg"] = field(default="decoded", metadata=NEUTRAL)


@dataclass(frozen=True, kw_only=True, slots=True)
class PackSpec(Spec):
    """tokens_per_row: capacity of a packed row."""

    tokens_per_row: int
