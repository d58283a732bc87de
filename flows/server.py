"""Which Prefect server a flow talks to: the one of `up` while it runs, else one of its own for as long as it lasts.

A flow made with `loop_flow` can be called anywhere (script, terminal, running notebook kernel) without set-up.
"""

import inspect
import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import prefect
from prefect.context import FlowRunContext
from prefect.logging.handlers import PrefectConsoleHandler
from prefect.settings import get_current_settings, temporary_settings

from data_lake.lease import newest
from data_lake.mirror import mirror_of
from flows import trace
from flows.places import Places, places
from flows.services import ledger
from flows.services.alive import end_stray_servers, marked_as_mine
from flows.services.commands import prefect_home
from tasks.events import read_events

EPHEMERAL_START_S = 120
"""A fresh database takes up to a minute to be made; Prefect gives up after 20 s unless told."""


class LoopFlow(prefect.Flow[Any, Any]):
    """A flow whose plain call finds its server by itself; what a worker executes is not touched."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the flow here, in a script or a running kernel, and return its result.

        `lake` and `home`, where the flow takes them, become absolute parameters of the run: whoever executes
        it again after a Retry, in whatever folder, finds the same places.
        """
        if FlowRunContext.get() is not None:
            return super().__call__(*args, **kwargs)
        takes = inspect.signature(self.fn).parameters
        own = {name: value for name, value in kwargs.items() if name in takes}
        rest = {name: value for name, value in kwargs.items() if name not in takes}
        given = dict(inspect.signature(self.fn).bind_partial(*args, **own).arguments)
        where = places_of(given)
        fixed = {name: str(path) for name, path in asdict(where).items() if name in takes}
        with prefect_settings(where):
            return super().__call__(**{**given, **fixed, **rest})


def loop_flow(**settings: Any) -> Callable[[Callable[..., Any]], LoopFlow]:
    """Decorator: `@loop_flow(name="train-loop")`. Takes what `prefect.flow` takes."""

    def decorate(fn: Callable[..., Any]) -> LoopFlow:
        hooks = {"on_running": [_leave_trace], "on_cancellation": [_end_training]}
        return LoopFlow(fn, persist_result=False, **hooks, **settings)

    return decorate


@contextmanager
def prefect_settings(where: Places) -> Iterator[None]:
    """Settings for flows of this home. A server that the environment names explicitly is left alone."""
    if get_current_settings().api.url is not None:
        yield
        return
    updates: dict[Any, Any] = {
        "home": prefect_home(where.home),
        "api.url": ledger.server_url(where.home),
        "server.analytics_enabled": False,
        "server.ephemeral.enabled": True,
        "server.ephemeral.startup_timeout_seconds": EPHEMERAL_START_S,
        "server.concurrency.lease_storage": "prefect.server.concurrency.lease_storage.filesystem",
        "server.logging_level": "ERROR",
    }
    prefect_home(where.home).mkdir(parents=True, exist_ok=True)
    with temporary_settings(updates=updates), _quiet_terminal():
        if updates["api.url"] is None:
            _start_own_server(where)
        yield


def _start_own_server(where: Places) -> None:
    """Prefect would start it by itself, in a terminal's reach: a Ctrl-C would end it before the run could say so.

    A blocked signal stays blocked in the child; SIGTERM, by which Prefect stops it, does not.
    """
    from prefect.server.api.server import SubprocessASGIServer  # seconds; a run on the server of `up` needs none of it

    end_stray_servers(prefect_home(where.home))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with marked_as_mine():
            SubprocessASGIServer().start(timeout=EPHEMERAL_START_S)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _quiet_terminal() -> Iterator[None]:
    """Prefect's chatter and tracebacks stay in the UI's logs; who follows a run on a terminal reads its events."""
    consoles = [each for each in logging.getLogger().handlers if isinstance(each, PrefectConsoleHandler)]
    before = [(handler, handler.level) for handler in consoles]
    logging.getLogger("prefect").addFilter(_is_worth_showing)
    for handler, _ in before:
        handler.setLevel(max(handler.level, logging.CRITICAL))
    try:
        yield
    finally:
        for handler, level in before:
            handler.setLevel(level)


def _is_worth_showing(record: logging.LogRecord) -> bool:
    """Starting and stopping a server of one's own is not; it is stopped when the process ends, after all else."""
    return "temporary server" not in str(record.msg)


@dataclass(frozen=True, kw_only=True, slots=True)
class PresentRun:
    """The flow run that this code executes in."""

    run_id: str
    parameters: dict[str, Any]
    expected_start: datetime


def present_run() -> PresentRun:
    """Raises RuntimeError outside of a flow run."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        raise RuntimeError("there is no flow run here; call the flow, not its function")
    run = context.flow_run
    expected = run.expected_start_time or datetime.now(UTC)
    return PresentRun(run_id=str(run.id), parameters=context.parameters or {}, expected_start=expected)


def places_of(parameters: dict[str, Any]) -> Places:
    """Where a run with these parameters keeps its lake and its state."""
    return places(parameters.get("lake"), parameters.get("home"))


def _leave_trace(flow: Any, flow_run: Any, state: Any) -> None:  # noqa: ARG001 (called by these names)
    """Hook of every attempt: who executes the run, so that its death can be noticed."""
    trace.leave(places_of(flow_run.parameters).home, str(flow_run.id))


def _end_training(flow: Any, flow_run: Any, state: Any) -> None:  # noqa: ARG001 (called by these names)
    """Hook of a cancelled run: a training job outlives its flow, for Retry to attach to; a cancel ends it too."""
    from tasks.train import cancel_job  # torch; most processes never need it

    where = places_of(flow_run.parameters)
    told = [event for event in read_events(where.home, str(flow_run.id)) if event["stage"] == "train"]
    name = f"train/{told[-1]['slot']}" if told else None
    holder = newest(where.lake / name / "leases") if name else None
    if name and holder and holder.run_id == str(flow_run.id):  # else somebody else follows that job by now
        cancel_job(mirror_of(where.lake, where.home) / name)
