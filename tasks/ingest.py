"""Ingest: a snapshot of recorded episodes becomes part of a lake data set; bad ones go to quarantine."""

from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from data_lake.head import SCHEME, leave_out, take_head
from data_lake.ingest import ingest_source
from data_lake.ingested import Ingested
from data_lake.refs import DatasetRef, EpisodesRef, SourceRef
from data_lake.runners import Runner
from data_lake.sources.remote import source_folder
from data_lake.sources.snapshot import digests, verify
from data_lake.specs import ReadSpec
from data_lake.store import Attempt
from data_lake.tables import dataset_root
from data_lake.words import counted
from errors import UserError
from model_core.embodiments import Embodiment, find_embodiment
from tasks.runtime import Progress, Runtime, Summary
from tasks.specs import IngestStage


def ingest(spec: IngestStage, source: SourceRef | EpisodesRef, *, out: Attempt, runtime: Runtime) -> DatasetRef:
    """Append what is new to {lake}/datasets/{dataset}; the slot keeps the view of this snapshot.

    A source `lake:NAME` is what came in before: the view is all of that data set, or what a saved view keeps of it.

    Raises UserError LAKE-003 when a folder changed since the run began: a Retry never reads other files.
    """
    if isinstance(source, SourceRef) and source.path.startswith(SCHEME):
        done = take_head(runtime.lake, source, spec.ingest, out.path)
    else:
        done = _from_files(spec, source, out=out, runtime=runtime)
    if spec.ingest.exclude:
        done = leave_out(done, spec.ingest.exclude, out.path)
    runtime.report(summary(done))
    return DatasetRef(
        uri=out.uri,
        fingerprint=done.fingerprint,
        dataset=done.view["dataset"],
        version=done.view["version"],
        num_episodes=done.num_episodes,
        num_quarantined=done.num_quarantined,
        num_frames=done.num_frames,
        num_findings=len(done.findings),
        num_new=done.num_new,
    )


def _from_files(spec: IngestStage, source: SourceRef | EpisodesRef, *, out: Attempt, runtime: Runtime) -> Ingested:
    embodiment = find_embodiment(spec.ingest.embodiment)
    from_outside = isinstance(source, SourceRef)
    folder = source_folder(source.path, runtime.home) if from_outside else runtime.local(source.uri)
    same_units(spec.ingest.read, embodiment)

    def unchanged() -> dict[Path, str]:
        if isinstance(source, SourceRef):
            return verify(replace(source, path=str(folder)), runtime.home / "snapshots")
        return digests(folder, runtime.home / "snapshots")

    return ingest_source(
        folder,
        spec.ingest,
        dataset_root=dataset_root(runtime.lake, spec.ingest.dataset),
        out_dir=out.path,
        label=source.uri if isinstance(source, SourceRef) else "collect",
        dims=(embodiment.state_dim, embodiment.action_dim),
        usual=(embodiment.control_hz, embodiment.cameras),
        digests=unchanged(),
        workers=runtime.workers,
        runner=Runner(name=runtime.runner, workers=runtime.workers, address=runtime.ray_address),
        on_progress=lambda number, total, figures: runtime.report(
            Progress(done=number, total=total, unit="episodes", figures=figures)
        ),
        check=out.check,
        unchanged=unchanged,
    )


def same_units(read: ReadSpec, embodiment: Embodiment) -> None:
    """Raises UserError LAKE-005 where the source's declared units are not the embodiment's."""
    pairs = {
        "state": (read.state_units, embodiment.state_units),
        "action": (read.action_units, embodiment.action_units),
    }
    for column, (declared, expected) in pairs.items():
        if declared and declared != expected:
            dim = next(dim for dim, (said, meant) in enumerate(zip_longest(declared, expected)) if said != meant)
            raise UserError(
                "LAKE-005",
                f"the source's {column} is in other units than {embodiment.name} has, first in dimension {dim}",
                where=f"declared: {', '.join(declared)} · {embodiment.name}: {', '.join(expected)}",
                done="nothing was read",
                next_step=f"convert the source, or name an embodiment with these units (ingest.read.{column}_units)",
            )


def summary(done: Ingested) -> Summary:
    """One line, and a row per finding."""
    line = f"{done.num_episodes} ok · {done.num_quarantined} quarantined · {counted(done.num_frames, 'frame')}"
    there = done.num_episodes - done.num_new
    line += f" · {done.num_new} new" + (f", {there} there already" if there else "")
    if warnings := sum(item.severity == "warning" for item in done.findings):
        line += f" · {counted(warnings, 'warning')}"
    return Summary(line=line, table=[item.as_json() for item in done.findings])
