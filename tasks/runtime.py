"""Runtime: where and how a stage runs. Never identity: the same spec gives the same slot everywhere."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data_lake.files import LakePath
from data_lake.mirror import fetched


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """`done` of `total` units, with what a person wants to see of it (`loss`, `samples/s`, …)."""

    done: int
    total: int
    unit: str
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """One plain line, such as whom a stage waits for."""

    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """What a finished stage shows: one line for the terminal, a table or markdown for the UI's artifact.

    cpu_seconds: of jobs that were no children of the stage's process, so that nobody else counts them.
    """

    line: str
    table: list[dict[str, Any]] = field(default_factory=list)
    markdown: str = ""
    cpu_seconds: float = 0.0


Report = Progress | Note | Summary


def _silent(_report: Report) -> None:
    """Nobody listens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Runtime:
    """lake: data and records. home: local state (Prefect home, SQLite, logs). run_id: the flow run's.

    workers: processes for CPU work. launcher: a name in LAUNCHERS. processes: ranks of a training job.
    micro_batch_rows: packed rows per forward. lease_s: a builder silent for this long is taken over.
    runner: who ingests and preprocesses, `native` (this machine) or `ray`: the cluster at ray_address, "" for one here.
    decode: who makes batches for training, `threads` of each rank or `ray`: the cluster at ray_address, which must be
    named, since a training job outlives whoever starts it.
    """

    lake: LakePath
    home: Path
    run_id: str
    label: str = ""
    workers: int = 2
    threads: int = 2
    launcher: str = "local"
    processes: int = 1
    micro_batch_rows: int = 0
    lease_s: float = 30.0
    runner: str = "native"
    decode: str = "threads"
    ray_address: str = ""
    sink: Callable[[Report], None] = _silent

    def report(self, report: Report) -> None:
        """Tell whoever follows this run."""
        self.sink(report)

    def path(self, uri: str) -> LakePath:
        """Where a ref's bytes are in the lake: for what is read a little at a time, tables first of all."""
        return self.lake / uri

    def local(self, uri: str, *, tables: bool = True) -> Path:
        """A ref's bytes as files of this machine: for what is read as a folder, such as a checkpoint. Without
        `tables` only what lies beside them."""
        return fetched(self.lake, uri, self.home, tables=tables)
