"""What `deployments/prefect.yaml` becomes: importable flows, typed forms, runs that are not tied to a worker."""

from typing import Any

import pytest

from flows.api import Refused
from flows.deploy import apply, declared, module_path, schedules
from flows.places import ROOT, places

NAMES = {"train-loop/tiny", "train-loop/smoke", "train-loop/gr1", "ingest-new/inbox", "nightly-eval/nightly"}


class FakeServer:
    """Keeps what it is given; knows a deployment once it was created."""

    def __init__(self) -> None:
        self.created: list[tuple[str, dict[str, Any]]] = []

    def call(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if any(known == (path, body) and path != "/flows/" for known in self.created):
            raise Refused(409, "exists")
        self.created.append((path, body))
        return {"id": "flow-1"}

    def deployment(self, name: str) -> dict[str, Any]:
        for path, body in reversed(self.created):
            if path == "/deployments/" and body["name"] == name.partition("/")[2]:
                return body
        raise Refused(404, "none")


@pytest.fixture(scope="module")
def bodies() -> dict[str, Any]:
    return declared(places("lake"))


def test_every_deployment_says_how_to_run_it(bodies: dict[str, Any]) -> None:
    assert set(bodies) == NAMES
    for body in bodies.values():
        assert body["work_pool_name"] == "vlaloop"
        assert body["pull_steps"] == [{"prefect.deployments.steps.set_working_directory": {"directory": str(ROOT)}}]
        assert body["job_variables"]["stream_output"] is False
        assert set(body["parameters"]) <= set(body["parameter_openapi_schema"]["properties"])


def test_schedules(bodies: dict[str, Any]) -> None:
    assert [name for name, body in bodies.items() if body["schedules"]] == [
        "train-loop/tiny",
        "ingest-new/inbox",
        "nightly-eval/nightly",
    ]
    assert schedules() == {"tiny": "0 2 * * *", "inbox": "*/5 * * * *", "nightly": "0 4 * * *"}


def test_the_run_form_is_typed(bodies: dict[str, Any]) -> None:
    schema = bodies["train-loop/tiny"]["parameter_openapi_schema"]
    assert schema["properties"]["recipe"]["default"] == "tiny"
    assert "TrainSpecChanges" in str(schema)


def test_applied_once_and_again_only_when_changed(bodies: dict[str, Any]) -> None:
    server = FakeServer()
    apply(server, bodies)  # type: ignore[arg-type]
    first = len(server.created)
    apply(server, bodies)  # type: ignore[arg-type]
    assert len(server.created) == first
    changed = {**bodies, "train-loop/gr1": {**bodies["train-loop/gr1"], "description": "other"}}
    apply(server, changed)  # type: ignore[arg-type]
    assert [path for path, _ in server.created[first:]] == ["/flows/", "/deployments/"]


def test_module_path() -> None:
    assert module_path("flows/train_loop.py:train_loop") == "flows.train_loop.train_loop"
