"""Refs: the only values that travel between stages. Small, frozen, JSON-safe; never the data itself.

`uri` is relative to the lake, so that a lake can be moved or copied. `fingerprint` is what downstream
identity is made of: the slot's for what a stage built, a content digest for data.
"""

from dataclasses import dataclass, fields, is_dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Ref:
    uri: str
    fingerprint: str

    def _repr_html_(self) -> str:
        """In a notebook, a ref is a small table."""
        from data_lake.notebook import table_html

        return table_html(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceRef(Ref):
    """A source as it was when the run began: `fingerprint` is the digest of its files, `path` where they are.

    `path` is runtime: the same files elsewhere are the same source.
    """

    path: str
    num_files: int
    num_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodesRef(Ref):
    """Recorded demonstrations: a LeRobot v3.0 folder."""

    num_episodes: int
    num_frames: int


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetRef(Ref):
    """The episodes of one source snapshot in a lake data set; `fingerprint` digests their contents.

    `uri` is the view of this snapshot, `dataset`@`version` the table group that it reads. num_new: episodes that the
    ingest brought in; the others were there.
    """

    dataset: str
    version: int
    num_episodes: int
    num_quarantined: int
    num_frames: int
    num_findings: int
    num_new: int = 0

    def _repr_html_(self) -> str:
        """In a notebook, a data set also shows images of its first episodes."""
        from data_lake.notebook import table_html, thumbnails_html

        return table_html(self) + thumbnails_html(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class PreprocessedRef(Ref):
    num_samples: int
    num_heldout: int
    num_views: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedRef(Ref):
    num_samples: int
    num_rows: int
    tokens_per_row: int
    fill_rate: float


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointRef(Ref):
    step: int
    samples_seen: int
    loss: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportRef(Ref):
    """`action_error` is the mean absolute difference to the unquantised policy, in units of the initial noise
    (normalised actions); `language_saving` and `total_saving` are fractions of the bf16 size."""

    precision: str
    num_bytes: int
    action_error: float
    language_saving: float
    total_saving: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskResult:
    """`k` successes in `n` episodes of one task, with the 95 % Wilson interval."""

    task: str
    n: int
    k: int
    safe: int
    low: float
    high: float
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalReport(Ref):
    """What a policy did in a suite. `score` is what the gate compares (higher is better): mean success in
    simulation; the smaller baseline's error over the policy's, offline. `baselines` are (name, error)."""

    suite: str
    simulator: str
    num_episodes: int
    score: float
    tasks: tuple[TaskResult, ...]
    collisions: int
    limit_hits: int
    non_finite: int
    error: float | None
    baselines: tuple[tuple[str, float], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelVersionRef(Ref):
    """`alias` is champion, challenger or None; `decision` is the gate's sentence.

    `accepted`: the policy got the best alias that its recipe may get.
    """

    name: str
    version: int
    alias: str | None
    accepted: bool
    decision: str


def to_json(value: Any) -> Any:
    """JSON form of a ref, with its type's name; `from_json` is its inverse."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"type": type(value).__name__, **{f.name: to_json(getattr(value, f.name)) for f in fields(value)}}
    return [to_json(item) for item in value] if isinstance(value, tuple) else value


def from_json(value: Any) -> Any:
    """The ref that `to_json` wrote. Raises KeyError for a type that does not exist."""
    if isinstance(value, dict):
        arguments = {name: from_json(item) for name, item in value.items() if name != "type"}
        return REF_TYPES[value["type"]](**arguments)
    return tuple(from_json(item) for item in value) if isinstance(value, list) else value


REF_TYPES = {
    kind.__name__: kind
    for kind in (
        SourceRef,
        EpisodesRef,
        DatasetRef,
        PreprocessedRef,
        PackedRef,
        CheckpointRef,
        ExportRef,
        EvalReport,
        TaskResult,
        ModelVersionRef,
    )
}
