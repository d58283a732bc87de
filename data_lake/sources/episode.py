"""What every source gives, whatever its format: a card that declares, and episodes that stream."""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from data_lake.findings import Finding
from data_lake.specs import ReadSpec
from errors import UserError


@dataclass(frozen=True, kw_only=True, slots=True)
class Feature:
    """A column or camera as the source declares it."""

    dtype: str
    shape: tuple[int, ...]
    names: Any = None


@dataclass(frozen=True, kw_only=True, slots=True)
class VideoSpan:
    """Where an episode's frames of one camera are: [from_s, to_s) of an mp4; to_s None means to its end.

    read: gives the mp4's bytes where it is no file of its own, and `path` only names it; may be called from another
    thread, raises Unreadable.
    """

    path: Path
    from_s: float
    to_s: float | None
    read: Callable[[], bytes] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Pictures:
    """An episode's frames of one camera that are no video: one (H, W, 3) uint8 array per row, as the source has them.

    frames: reads them anew at each call, one at a time; raises Unreadable or one of ODD for what cannot be read.
    """

    path: Path
    frames: Callable[[], Iterator[np.ndarray]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Episode:
    """One demonstration. `source_episode` is the source's own number: a key, never a position.

    rows: a row per frame under the source's column names, with `task` (the row's instruction, "" for none);
    None when they cannot be read, and then `findings` say why. instruction: that of the first row. views: by
    the camera's key; an episode may lack some. file: of the rows, relative to the source. length: as the
    metadata declare it. extra: what the source says of the episode beside (seed, success). statistics: what it
    states of the episode's rows: column to `mean`, `std`, `min`, `max`, `count`, `q01`, …
    part: place in the source's `parts`. lasting: False where more than its part decided what it is. counted: its number
    follows from how many such there are in the parts before.
    """

    source_episode: int
    rows: pa.Table | None
    instruction: str = ""
    views: Mapping[str, VideoSpan | Pictures] = field(default_factory=dict)
    file: str | None = None
    length: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    statistics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    part: int = 0
    lasting: bool = True
    counted: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A piece of a source that is read as a whole. While its files and `said` are the same, so are its episodes.

    files: all that hold it. said: what the metadata say of it. follows: its episodes are numbered behind those of the
    part before, so that a change there is one here.
    """

    files: tuple[Path, ...]
    said: str = ""
    follows: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceCard:
    """What a source declares of all its episodes. cameras: keys that have files. declared: what its recorder
    wrote beside the format, by_format: what the format itself settles (colour_order, …: see `meaning_of`).
    statistics: as an episode's, over all rows. splits: the episode numbers of each. findings: about the source
    as a whole."""

    root: Path
    format: str
    version: str
    fps: float
    robot: str
    features: Mapping[str, Feature]
    cameras: tuple[str, ...]
    num_episodes: int
    instruction_source: str
    declared: Mapping[str, Any] = field(default_factory=dict)
    by_format: Mapping[str, Any] = field(default_factory=dict)
    statistics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    splits: Mapping[str, range] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def relative(self, path: Path) -> str:
        """`path` as findings name it."""
        if path == self.root:
            return path.name
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()


NOTHING: Mapping[int, int] = MappingProxyType({})


class Source(Protocol):
    """A recording format: built as `Source(path, read)`, it streams; nothing is read ahead.

    read: what the files do not say of themselves. Constructing raises UserError when the metadata cannot be read,
    LAKE-035 (see `asked`) when `read` lacks what this source needs. `episodes` yields each listed episode exactly
    once; one that cannot be read is yielded with its findings and without rows.
    `parts` tells before reading what would be read, in the order of `episodes`; a format that cannot tell has one part,
    with all its files. `shared` is what all parts are read by, beside the card: more may come to it as a source grows.
    left_out: parts, by place, that are known and not read, and how many episodes each has.
    TAKES: the fields of `read` that the format leaves open, beside what every source takes (`TAKEN_BY_ALL`).
    """

    TAKES: ClassVar[frozenset[str]]

    @property
    def card(self) -> SourceCard: ...

    @property
    def parts(self) -> Sequence[Part]: ...

    @property
    def shared(self) -> Mapping[str, str]: ...

    def episodes(self, left_out: Mapping[int, int] = NOTHING) -> Iterator[Episode]: ...

    @staticmethod
    def recognises(path: Path) -> bool: ...


TAKEN_BY_ALL = frozenset(
    {
        *("ignore_tasks", "colour_order", "image_orientation", "action_mode", "grippers"),
        *("rotations", "padding", "state_units", "action_units"),
    }
)


TOLD = "=pick up the cup"  # an instruction in words, as an example
UNSAID, NO_GUESS = "the source does not say ", "; nothing is guessed"


def asked(path: Path, field_name: str, why: str, choices: str, example: Any) -> UserError:
    """LAKE-035: this source needs `ingest.read.<field_name>`. choices: what it may be. example: one of them, to show
    how it is written."""
    return UserError(
        "LAKE-035",
        f"{UNSAID}{why}",
        where=str(path),
        done="nothing was read",
        next_step=f"set ingest.read.{field_name} to {choices}, as in {setting(field_name, example)}{NO_GUESS}",
    )


def setting(field_name: str, value: Any) -> str:
    """As a shell takes it: `--set ingest.read.fps=20`, `--set 'ingest.read.state=["a", "b"]'`."""
    text = value if isinstance(value, str) else json.dumps(value)
    return f"--set {shlex.quote(f'ingest.read.{field_name}={text}')}"


def ask_together(*checks: Callable[[], object]) -> None:
    """Make every check, so that a person is asked once for all that is missing. Raises one UserError LAKE-035 for all
    of those that asked, and any other UserError as it comes."""
    questions: list[UserError] = []
    for check in checks:
        try:
            check()
        except UserError as error:
            if error.code != "LAKE-035":
                raise
            questions.append(error)
    if questions:
        first = questions[0]
        steps = [each.next_step.removesuffix(NO_GUESS) for each in questions]
        raise UserError(
            first.code,
            UNSAID + ", nor ".join(each.message.removeprefix(UNSAID) for each in questions),
            where=first.where,
            done=first.done,
            next_step="; ".join(steps) + NO_GUESS,
        )


RATE = "a rate in Hz such as 5 or 30000/1001"
MAX_HZ = 1_000_000


def declared_rate(path: Path, read: ReadSpec) -> Fraction | None:
    """`read.fps`, None where it is not declared. Raises UserError LAKE-035 for what is no rate."""
    if read.fps is None:
        return None
    try:
        rate = Fraction(str(read.fps))
    except (ValueError, ZeroDivisionError):
        rate = Fraction(0)
    if not 0 < rate < MAX_HZ:
        raise asked(path, "fps", f"what the rate {read.fps!r} is", RATE, 20)
    return rate


def contradicted(path: Path, field_name: str, recorded: Any, declared: Any) -> UserError:
    """LAKE-036: the source says one thing, `ingest.read.<field_name>` another."""
    return UserError(
        "LAKE-036",
        f"the source says {field_name} {recorded!r}, the recipe {declared!r}",
        where=str(path),
        done="nothing was read",
        next_step=f"leave ingest.read.{field_name} out, or correct the source",
    )


def view_name(camera: str) -> str:
    """The canonical view of a camera key: `observation.images.wrist` is `wrist`."""
    return camera.removeprefix("observation.images.").removeprefix("observation.")
