"""A stage, and how one is built: once per slot, by whoever comes first, without any orchestrator."""

import os
import pkgutil
import platform
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

from data_lake.disk import disk_faults
from data_lake.files import LakePath
from data_lake.lease import Holder, TakenOver
from data_lake.mirror import mirror_of
from data_lake.objects import answering
from data_lake.reasons import reasons
from data_lake.refs import Ref, SourceRef, to_json
from data_lake.runs import Run
from data_lake.standing import lost, unread
from data_lake.store import Attempt, Slot, begin, now, revoke, slot_of
from data_lake.vouched import require_files
from tasks.code import code_digest
from tasks.events import StageEvents
from tasks.runtime import Report, Runtime, Summary

RECORDED_VERSIONS = ("numpy", "pylance", "torch", "mujoco", "metaworld", "mlflow", "daft", "av", "prefect")
FAIL_ONCE = "VLALOOP_FAIL_STAGE"  # tests only: this stage fails the first time that a run reaches it


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """What a stage gave: its ref, its record, and whether this call built it."""

    ref: Ref
    record: dict[str, Any]
    is_cached: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A plain function `fn(spec, *refs, out, runtime) -> Ref`, by dotted name, and how it is retried.

    version: bumped when the function's meaning changes, and only then. retries: of `Transient` errors.
    resources: names of Prefect's global concurrency limits that a build occupies. part: of a mixture, which component
    it is for; a label.
    """

    fn: str
    version: int
    retries: int
    resources: tuple[str, ...] = ()
    part: str = ""

    @property
    def title(self) -> str:
        """What people call it: `train`, or `ingest:cart2` for a component of a mixture."""
        return f"{self.name}:{self.part}" if self.part else self.name

    def of(self, part: str) -> "Stage":
        """The same stage, for a component of a mixture."""
        return replace(self, part=part)

    @property
    def name(self) -> str:
        return self.fn.partition(":")[2]

    @property
    def module(self) -> str:
        return self.fn.partition(":")[0]

    def slot(self, spec: Any, *refs: Ref, lake: LakePath) -> Slot:
        return slot_of(lake, self.name, self.version, spec, refs)

    def __call__(self, spec: Any, *refs: Ref, runtime: Runtime) -> Ref:
        """Run as a Prefect task of the current flow run."""
        from tasks.stage import run_as_task  # Prefect takes seconds to import; plans need none of it

        return run_as_task(self, spec, *refs, runtime=runtime)


@dataclass(slots=True)
class _Collected:
    """Reports that end up in the record."""

    summary: Summary = field(default_factory=lambda: Summary(line=""))

    def listen(self, report: Report) -> None:
        if isinstance(report, Summary):
            self.summary = report


def build(stage: Stage, spec: Any, *refs: Ref, runtime: Runtime) -> Built:
    """The stage's ref: from its record if there is one, else built now, or by another builder meanwhile.

    Raises whatever the stage function raises, Transient when the lake's object store does not answer; the slot then
    stays half filled for the next attempt.
    """
    with answering(runtime.lake):
        return _build(stage, spec, *refs, runtime=runtime)


def _build(stage: Stage, spec: Any, *refs: Ref, runtime: Runtime) -> Built:
    slot = _standing(stage, spec, refs, runtime)
    Run(lake=runtime.lake, run_id=runtime.run_id).touch(slot)
    events = StageEvents(stage=stage.title, slot=slot.fingerprint, runtime=runtime)
    if slot.record() is None:
        require_files(runtime.lake, refs)
        events.write("start", why=reasons(slot, runtime.label))
        attempt = _begin(slot, events)
        if attempt is not None:
            try:
                return _build_attempt(stage, spec, refs, attempt, replace(runtime, sink=events.report), events)
            except TakenOver:  # this builder slept for too long; whoever took over is waited for like any other
                return _build(stage, spec, *refs, runtime=runtime)
    record = slot.record()
    ref = slot.ref()
    if record is None or ref is None:
        raise RuntimeError(f"{slot.name}: the record vanished while this run read it")
    events.write("cached", line=record["summary"]["line"], built=record["provenance"]["finished"], seconds=0.0)
    return Built(ref=ref, record=record, is_cached=True)


def _standing(stage: Stage, spec: Any, refs: tuple[Ref, ...], runtime: Runtime) -> Slot:
    """The stage's slot; behind a record that does not hold any more, which is revoked, the one that replaces it."""
    slot = stage.slot(spec, *refs, lake=runtime.lake)
    record = slot.record()
    why = lost(runtime.lake, record) if record else ""
    if record and not why and (left := unread(runtime.lake, record)):
        events = StageEvents(stage=stage.title, slot=slot.fingerprint, runtime=runtime)
        events.write("start", why=[left])
        ref = _look_again(stage, spec, refs, slot, replace(runtime, sink=events.report), events)
        why = "" if ref.fingerprint == record["ref"]["fingerprint"] else f"{left}, and now can"
    if not why:
        return slot
    revoke(slot, why=why, who="vlaloop")
    return stage.slot(spec, *refs, lake=runtime.lake)


def _look_again(
    stage: Stage, spec: Any, refs: tuple[Ref, ...], slot: Slot, runtime: Runtime, events: StageEvents
) -> Ref:
    """What the stage gives now; nothing is recorded, nor kept beside what it put into a data set."""
    require_files(runtime.lake, refs)
    attempt = _begin(slot, events, again=True)
    assert attempt is not None
    try:
        return pkgutil.resolve_name(stage.fn)(spec, *refs, out=attempt, runtime=runtime)
    finally:
        shutil.rmtree(attempt.path)
        attempt.release()


def _begin(slot: Slot, events: StageEvents, *, again: bool = False) -> Attempt | None:
    runtime = events.runtime
    return begin(
        slot,
        run_id=runtime.run_id,
        lease_s=runtime.lease_s,
        on_wait=lambda held: _waiting(events, held),
        mirror=mirror_of(runtime.lake, runtime.home),
        again=again,
    )


def _waiting(events: StageEvents, held: Holder) -> None:
    events.write("waiting", text=f"waits for run {held.run_id[:8]} (pid {held.pid}), which builds the same slot")


def _build_attempt(
    stage: Stage, spec: Any, refs: tuple[Ref, ...], attempt: Attempt, runtime: Runtime, events: StageEvents
) -> Built:
    fn: Callable[..., Ref] = pkgutil.resolve_name(stage.fn)
    collected = _Collected()
    started, clock, cpu = now(), time.monotonic(), _cpu_seconds()

    def sink(report: Report) -> None:
        collected.listen(report)
        runtime.sink(report)

    needed_bytes = sum(ref.num_bytes for ref in refs if isinstance(ref, SourceRef))
    try:
        with disk_faults(attempt.path, needed_bytes=needed_bytes):
            _fail_if_asked(stage, runtime)
            ref = fn(spec, *refs, out=attempt, runtime=replace(runtime, sink=sink))
            seconds = time.monotonic() - clock
            record = attempt.commit(
                ref,
                {
                    "label": runtime.label,
                    "inputs": [to_json(each) for each in refs],
                    "code": code_digest(stage.module),
                    "summary": {"line": collected.summary.line, "table": collected.summary.table},
                    "provenance": {
                        "run_id": runtime.run_id,
                        "started": started,
                        "finished": now(),
                        "seconds": round(seconds, 3),
                        "cpu_seconds": round(_cpu_seconds() - cpu + collected.summary.cpu_seconds, 3),
                        **_machine(),
                    },
                },
            )
    except BaseException as error:  # an edge: whatever it was, the next builder must not wait for the lease
        attempt.release()
        events.write("failed", error=f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        raise
    events.write("built", line=collected.summary.line, seconds=seconds)
    return Built(ref=ref, record=record, is_cached=False)


def _fail_if_asked(stage: Stage, runtime: Runtime) -> None:
    mark = runtime.home / "runs" / runtime.run_id / f"failed-{stage.name}"
    if os.environ.get(FAIL_ONCE) == stage.name and not mark.exists():
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
        raise RuntimeError(f"{stage.name} was told to fail once by {FAIL_ONCE}")


def _cpu_seconds() -> float:
    """CPU time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def _machine() -> dict[str, Any]:
    return {
        "host": platform.node(),
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "versions": {name: version(name) for name in RECORDED_VERSIONS},
    }
