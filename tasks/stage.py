"""A stage as a retryable Prefect task: the lake says what is finished, Prefect shows it and presses on.

What a stage reports goes to the run's event file and, while a server listens, to artifacts in the UI.
"""

import functools
import hashlib
import re
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any
from uuid import UUID

from prefect import get_run_logger, task
from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import ConcurrencyLeaseHolder
from prefect.concurrency.sync import concurrency
from prefect.runtime import flow_run
from prefect.settings import get_current_settings
from prefect.states import Completed
from prefect.tasks import Task, exponential_backoff

from data_lake.refs import ModelVersionRef, Ref
from errors import Transient
from tasks.build import Built, Stage, build
from tasks.runtime import Note, Progress, Report, Runtime, Summary

PROGRESS_EVERY_S = 2.0  # an update is an HTTP request
AWAY_S = 30.0  # how long a server that did not answer is not asked again
SLOT_LEASE_S = 60.0  # Prefect frees the concurrency slot of a dead holder after this


def run_as_task(stage: Stage, spec: Any, *refs: Ref, runtime: Runtime) -> Ref:
    """Run `stage` as a task of the current flow run and return its ref."""
    short = stage.slot(spec, *refs, lake=runtime.lake).name
    named = _task(stage).with_options(task_run_name=short)
    return named(stage, spec, refs, runtime, return_state=True).result()  # raises what the stage raised


@functools.cache
def _task(stage: Stage) -> Task[..., Any]:
    decorate = task(
        name=stage.title,
        retries=stage.retries,
        retry_delay_seconds=exponential_backoff(backoff_factor=2),
        retry_jitter_factor=0.5,
        retry_condition_fn=_is_transient,
        cache_policy=NO_CACHE,  # the lake says what is finished
        persist_result=False,
    )
    return decorate(_run)


def _is_transient(_task: Any, _run: Any, state: Any) -> bool:
    try:
        state.result()
    except Transient:
        return True
    except Exception:  # an edge: any other error fails once, loudly
        return False
    return False


def _run(stage: Stage, spec: Any, refs: tuple[Ref, ...], runtime: Runtime) -> Any:
    """Body of the task: returns a state whose name tells how the ref came about."""
    slot = stage.slot(spec, *refs, lake=runtime.lake)
    artifacts = _Artifacts(stage.title, slot.name)
    with nullcontext() if slot.record() else _occupied(stage, runtime):
        built = build(stage, spec, *refs, runtime=replace(runtime, sink=artifacts.listen))
    return _state(built)


def _occupied(stage: Stage, runtime: Runtime) -> AbstractContextManager[Any]:
    """The stage's global concurrency limits, on a server that has them; a dead holder's lease runs out."""
    if not stage.resources or not get_current_settings().api.url:
        return nullcontext()
    holder = ConcurrencyLeaseHolder(type="flow_run", id=UUID(flow_run.get_id()))
    return concurrency(list(stage.resources), occupy=1, lease_duration=SLOT_LEASE_S, holder=holder)


def _state(built: Built) -> Any:
    provenance = built.record["provenance"]
    if built.is_cached:
        message = f"built {provenance['finished']} by run {provenance['run_id'][:8]} in {provenance['seconds']:.0f} s"
        return Completed(name="Cached", message=message, data=built.ref)
    if isinstance(built.ref, ModelVersionRef) and not built.ref.accepted:
        return Completed(name="Rejected", message=built.ref.decision, data=built.ref)
    return Completed(message=built.record["summary"]["line"], data=built.ref)


def artifact_key(name: str) -> str:
    """`name` as a key of Prefect's, which takes `[a-z0-9-]` alone: itself where it is one, else with what it may not
    have as dashes and, since other names would give the same, the beginning of the name's SHA-256."""
    plain = re.sub("[^a-z0-9]+", "-", name.lower())
    return name if re.fullmatch("[a-z0-9-]+", name) else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


class _Artifacts:
    """Shows reports in the Prefect UI: a progress artifact while it runs, a table or markdown at the end.

    Showing never stops a build: when the server does not take something, whyever, it is left alone for a while.
    """

    def __init__(self, stage: str, slot: str) -> None:
        self._stage = stage
        self._slot = slot
        self._progress: Any = None
        self._next_try = self._updated = time.monotonic()

    def listen(self, report: Report) -> None:
        if time.monotonic() < self._next_try:
            return
        try:
            self._show(report)
        except Exception as error:  # an edge: Prefect raises its own, httpx's, pydantic's and the system's
            self._next_try = time.monotonic() + AWAY_S
            get_run_logger().warning("the Prefect server does not take artifacts (%s); building goes on", error)

    def _show(self, report: Report) -> None:
        match report:
            case Progress():
                self._show_progress(report)
            case Note():
                get_run_logger().info(report.text)
            case Summary():
                self._show_summary(report)

    def _show_progress(self, report: Progress) -> None:
        if time.monotonic() - self._updated < PROGRESS_EVERY_S or not report.total:
            return
        self._updated = time.monotonic()
        percent = 100.0 * report.done / report.total
        if self._progress is None:
            self._progress = create_progress_artifact(
                progress=percent,
                key=artifact_key(f"{self._stage}-progress"),
                description=f"{self._slot}, in {report.unit}",
            )
        else:
            update_progress_artifact(self._progress, progress=percent)

    def _show_summary(self, report: Summary) -> None:
        get_run_logger().info("%s %s", self._slot, report.line)
        key = artifact_key(self._stage)
        if report.table:
            create_table_artifact(table=report.table, key=key, description=f"{self._slot} · {report.line}")
        elif report.markdown:
            create_markdown_artifact(markdown=report.markdown, key=key, description=report.line)
