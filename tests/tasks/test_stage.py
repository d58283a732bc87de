"""Stages as Prefect tasks: cached ones show as such, only Transient is retried, a gate's no is not a failure."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter
from prefect.events.worker import EventsWorker
from prefect.exceptions import PrefectException
from prefect.testing.utilities import prefect_test_harness
from prefect.types.names import raise_on_name_alphanumeric_dashes_only

from data_lake.refs import ModelVersionRef, Ref
from data_lake.store import Attempt
from tasks.build import Stage
from tasks.events import read_events
from tasks.runtime import Progress, Runtime, Summary
from tasks.stage import artifact_key
from tests.tasks.fake_stages import CountSpec

COUNT = Stage(fn="tests.tasks.fake_stages:count", version=1, retries=2)
JUDGE = Stage(fn="tests.tasks.test_stage:judge", version=1, retries=0)


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[None]:
    EventsWorker.drain_all()  # events of this process go to the first server that it met; this is another one
    with prefect_test_harness(server_startup_timeout=120):
        yield


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    return Runtime(lake=tmp_path / "lake", home=tmp_path / "home", run_id="run-1", label="x", lease_s=5.0)


def judge(spec: CountSpec, *, out: Attempt, runtime: Runtime) -> ModelVersionRef:
    runtime.report(Progress(done=1, total=2, unit="checks"))
    runtime.report(Summary(line="judged", table=[{"check": "score", "passed": spec.steps > 1}]))
    return ModelVersionRef(
        uri=out.uri,
        fingerprint=out.fingerprint,
        name="m",
        version=1,
        alias=None,
        accepted=spec.steps > 1,
        decision="no",
    )


COMPONENTS = ("repacked", "Lab_A", "lab:a:2", "räume/2 数据")


@flow
def one(stage: Stage, spec: CountSpec, runtime: Runtime) -> Ref:
    return stage(spec, runtime=runtime)


def run(stage: Stage, spec: CountSpec, runtime: Runtime) -> tuple[Any, list[Any]]:
    """The flow's final state and its task runs, as the server knows them."""
    state = one(stage, spec, runtime, return_state=True)
    run_id = state.state_details.flow_run_id
    deadline = time.monotonic() + 10  # task runs reach the server as events, a moment later
    with get_client(sync_client=True) as client:
        while time.monotonic() < deadline:
            tasks = client.read_task_runs(flow_run_filter=FlowRunFilter(id={"any_": [run_id]}))
            if tasks and all(task.state.is_final() for task in tasks):
                return state, tasks
            time.sleep(0.1)
    raise TimeoutError(f"no final task runs of {run_id}")


def test_a_built_stage_is_completed_and_the_next_run_shows_it_as_cached(runtime: Runtime) -> None:
    state, (task,) = run(COUNT, CountSpec(steps=1), runtime)
    again, (cached,) = run(COUNT, CountSpec(steps=1), runtime)
    assert state.result() == again.result()
    assert (task.state.name, cached.state.name) == ("Completed", "Cached")
    assert task.name.startswith("count/") and "by run run-1" in cached.state.message


def test_an_error_fails_once_and_a_transient_one_is_tried_again(runtime: Runtime) -> None:
    state, (task,) = run(COUNT, CountSpec(steps=1, fail="bug"), runtime)
    assert state.is_failed() and task.run_count == 1
    stage = Stage(fn=COUNT.fn, version=2, retries=1)
    state, (task,) = run(stage, CountSpec(steps=1, fail="transient"), runtime)
    assert state.is_failed() and task.run_count == 2
    assert [event["event"] for event in read_events(runtime.home, "run-1")].count("failed") == 3


def test_a_gate_that_says_no_completes_as_rejected(runtime: Runtime) -> None:
    _, (accepted,) = run(JUDGE, CountSpec(steps=2), runtime)
    _, (rejected,) = run(JUDGE, CountSpec(steps=1), runtime)
    assert (accepted.state.name, rejected.state.name) == ("Completed", "Rejected")
    assert rejected.state.is_completed() and rejected.state.message == "no"


def test_what_a_stage_reports_becomes_an_artifact(runtime: Runtime) -> None:
    _, (task,) = run(JUDGE, CountSpec(steps=3), runtime)
    with get_client(sync_client=True) as client:
        artifacts = client.read_artifacts()
    assert any(each.task_run_id == task.id and each.type == "table" for each in artifacts)


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_component_of_any_name_is_built_and_shown(
    name: str, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a mixture: `ingest:repacked`, whose ingest shows how far it is and then a table."""
    monkeypatch.setattr("tasks.stage.PROGRESS_EVERY_S", 0.0)
    stage = Stage(fn=JUDGE.fn, version=1, retries=0).of(name)
    state, (task,) = run(stage, CountSpec(steps=5), runtime)
    assert state.is_completed() and task.state.name == "Completed"
    with get_client(sync_client=True) as client:
        shown = [each for each in client.read_artifacts() if each.task_run_id == task.id]
    assert {each.type for each in shown} == {"progress", "table"}
    assert {each.key for each in shown} == {artifact_key(f"judge:{name}"), artifact_key(f"judge:{name}-progress")}


@given(st.text(min_size=1), st.text(min_size=1))
def test_every_name_has_a_key_of_its_own_that_prefect_takes(one: str, other: str) -> None:
    keys = [raise_on_name_alphanumeric_dashes_only(artifact_key(name)) for name in (one, one.lower(), other)]
    assert len(set(keys)) == len({one, one.lower(), other})


def refused_by_pydantic() -> Exception:
    with pytest.raises(pydantic.ValidationError) as refused:
        pydantic.TypeAdapter(int).validate_python("x")
    return refused.value


@pytest.mark.parametrize(
    "error",
    [
        OSError("refused"),
        httpx.ReadTimeout("slow"),
        PrefectException("500"),
        refused_by_pydantic(),
        RuntimeError("loop closed"),
    ],
)
def test_a_server_that_takes_no_artifacts_does_not_stop_a_build(
    error: Exception, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def away(**fields: Any) -> None:
        asked.append(fields["key"])
        raise error

    monkeypatch.setattr("tasks.stage.create_table_artifact", away)
    state, _ = run(JUDGE, CountSpec(steps=4), runtime)
    assert state.is_completed() and asked == ["judge"]
    assert [event["event"] for event in read_events(runtime.home, "run-1")][-2:] == ["summary", "built"]
