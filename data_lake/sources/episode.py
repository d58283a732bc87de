"""What every source gives, whatever its format: a card that declares, and episodes that stream."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from data_lake.findings import Finding


@dataclass(frozen=True, kw_only=True, slots=True)
class Feature:
    """A column or camera as the source declares it."""

    dtype: str
    shape: tuple[int, ...]
    names: Any = None


@dataclass(frozen=True, kw_only=True, slots=True)
class VideoSpan:
    """Where an episode's frames of one camera are: [from_s, to_s) of an mp4; to_s None means to its end."""

    path: Path
    from_s: float
    to_s: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Episode:
    """One demonstration. `source_episode` is the source's own number: a key, never a position.

    rows: a row per frame under the source's column names, with `task` (the row's instruction, "" for none);
    None when they cannot be read, and then `findings` say why. instruction: that of the first row. views: by
    the camera's key; an episode may lack some. file: of the rows, relative to the source. length: as the
    metadata declare it. extra: what the source says of the episode beside (seed, success).
    """

    source_episode: int
    rows: pa.Table | None
    instruction: str = ""
    views: Mapping[str, VideoSpan] = field(default_factory=dict)
    file: str | None = None
    length: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceCard:
    """What a source declares of all its episodes. cameras: keys that have files. declared: what our own
    recorder wrote beside the format (render_every, scene, …). findings: about the source as a whole."""

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
    findings: tuple[Finding, ...] = ()

    def relative(self, path: Path) -> str:
        """`path` as findings name it."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()


class Source(Protocol):
    """A recording format: built as `Source(path, ignore_tasks=(...))`, it streams; nothing is read ahead.

    Constructing raises UserError when the metadata cannot be read. `episodes` yields each listed episode
    exactly once; one that cannot be read is yielded with its findings and without rows.
    """

    @property
    def card(self) -> SourceCard: ...

    def episodes(self) -> Iterator[Episode]: ...

    @staticmethod
    def recognises(path: Path) -> bool: ...


def view_name(camera: str) -> str:
    """The canonical view of a camera key: `observation.images.wrist` is `wrist`."""
    return camera.removeprefix("observation.images.").removeprefix("observation.")
