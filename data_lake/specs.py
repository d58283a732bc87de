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
class RotationSpec(Spec):
    """How a source writes one rotation: dims [first, first + its size) of `state` or `action`.

    kind: `euler_xyz` is roll, pitch, yaw; `axis_angle` a vector whose length is the angle, both in rad; of a
    quaternion the letters tell the order; `rotation_6d` the first two columns of the matrix, `matrix` its rows.
    """

    column: Literal["state", "action"]
    first: int
    kind: Literal["euler_xyz", "axis_angle", "quaternion_xyzw", "quaternion_wxyz", "rotation_6d", "matrix"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PaddingSpec(Spec):
    """Dimensions of `state` or `action` that carry nothing: always zero, written only to fill the vector."""

    column: Literal["state", "action"]
    dims: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadSpec(Spec):
    """What the files of a source do not say of themselves. None or empty: as its format says; where the format
    does not, reading stops and asks for the field by name.

    fps: rate of the rows: 5, or a rational such as "30000/1001".
    state, action: paths of columns (HDF5, RLDS) or topic fields (bags), concatenated in this order.
    views: view name to the path of its pictures, or its topic.
    instruction: path of the words, or the words themselves after "=".
    ignore_tasks: pseudo-instructions that are marks, not language (GR00T's "valid").
    action_mode: actions are targets, changes from the step before, or relative to the state at the chunk's start.
    state_units, action_units: per dim, compared with the embodiment's.
    rotations, padding: which dims are what; values that contradict are found.
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
    action_mode: Literal["absolute", "delta", "relative"] | None = None
    grippers: tuple[GripperSpec, ...] = ()
    rotations: tuple[RotationSpec, ...] = field(default=(), metadata=NEUTRAL)
    padding: tuple[PaddingSpec, ...] = field(default=(), metadata=NEUTRAL)
    state_units: tuple[str, ...] = field(default=(), metadata=NEUTRAL)
    action_units: tuple[str, ...] = field(default=(), metadata=NEUTRAL)
    clock: Literal["header", "log"] | None = None
    max_age_s: float | None = None
    gaps: Literal["cut", "mark"] = "cut"
    only_success: bool = True


AS_THE_SOURCE_SAYS = ReadSpec()


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestSpec(Spec):
    """Where episodes come from.

    dataset: name of the lake data set. It is where the episodes go, hence identity of the ingest; what is built on them
        goes by their contents.
    source: folder or file to read; None: what `collect` recorded. `lake:NAME`, `lake:NAME@3/VIEW`: a data set of the
        lake, or what a saved view keeps of it. A label: files enter identity by their digest.
    format: a name in SOURCES, or `auto` to tell by layout and version.
    copy: whether the lake keeps the bytes of video files, or refers to the files where they are, held to their size
    and hash at each opening. A label: the content is the same, so a finished ingest is not repeated for it.
    embodiment: a name in EMBODIMENTS; its layout is checked against the data.
    exclude: source episodes that this loop leaves out; the lake keeps them.
    """

    dataset: str
    source: str | None = field(default=None, metadata=LABEL)
    copy: Literal["copy", "reference"] = field(default="copy", metadata=LABEL)
    format: str = "auto"
    embodiment: str
    read: ReadSpec = AS_THE_SOURCE_SAYS
    exclude: tuple[int, ...] = field(default=(), metadata=NEUTRAL)


@dataclass(frozen=True, kw_only=True, slots=True)
class CameraSlot(Spec):
    """A slot of the policy's views, and the camera of this data set that fills it; None: the data set has none."""

    slot: str
    camera: str | None


Tier = Literal["decoded", "jpeg", "video"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PreprocessSpec(Spec):
    """sample_stride: a sample starts at every n-th frame. heldout_episodes: source episodes kept from
    training and statistics, used for open-loop errors. cameras: where they are not called as the policy's views.
    images: `decoded` stores pictures as the policy sees them; `jpeg` with losses that the card states; `video` stores
    none and decodes them as samples are read: little disk, much more work in training."""

    sample_stride: int = 1
    heldout_episodes: tuple[int, ...] = ()
    cameras: tuple[CameraSlot, ...] = field(default=(), metadata=NEUTRAL)
    images: Tier = field(default="decoded", metadata=NEUTRAL)


@dataclass(frozen=True, kw_only=True, slots=True)
class MixtureComponent(Spec):
    """A further data set to train on, taken in and preprocessed by itself.

    name: what it is called in plans and figures. weight: how often each of its samples is met in an epoch; 0.5 is
    every second epoch.
    """

    name: str = field(metadata=LABEL)
    weight: float = 1.0
    ingest: IngestSpec
    preprocess: PreprocessSpec = PreprocessSpec()


@dataclass(frozen=True, kw_only=True, slots=True)
class MixtureSpec(Spec):
    """weight: as a component's, of the recipe's own `ingest`. others: what is trained on beside it."""

    weight: float = 1.0
    others: tuple[MixtureComponent, ...] = ()


ONE_DATA_SET = MixtureSpec()


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanShuffle(Spec):
    """Samples of one length are met in spans of `length` neighbours; every `window` of them is shuffled.

    Cheaper to read where neighbours lie in one file: a window of a few batches meets each key frame once.
    """

    length: int
    window: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PackSpec(Spec):
    """tokens_per_row: capacity of a packed row. shuffle: who comes when; `uniform` is independent of all neighbours."""

    tokens_per_row: int
    shuffle: Literal["uniform"] | SpanShuffle = field(default="uniform", metadata=NEUTRAL)
