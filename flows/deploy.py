"""Gives `deployments/prefect.yaml` to a Prefect server: work pool, concurrency limit, deployments. Idempotent."""

import hashlib
import json
import pkgutil
from pathlib import Path
from typing import Any

import yaml

from flows.api import Json, PrefectApi, Refused
from flows.places import ROOT, Places
from flows.services.commands import CORES_LIMIT, POOL

RUNS_AT_ONCE = 4
"""Flow runs of the pool. Heavy stages still take turns by the concurrency limit, and say that they wait."""

UNTIED = {"stream_output": False}
"""Else a run writes to a pipe of its worker, and dies at the next line when the worker is killed."""

CONFLICT, NOT_FOUND = 409, 404


DECLARED = ROOT / "deployments" / "prefect.yaml"


def schedules(path: Path = DECLARED) -> dict[str, str]:
    """What the file starts by itself: the cron line by deployment, in UTC."""
    rows = yaml.safe_load(path.read_text())["deployments"]
    return {row["name"]: each["cron"] for row in rows for each in row.get("schedules", ()) if each["active"]}


def declared(places: Places, path: Path = DECLARED) -> dict[str, Json]:
    """What the file declares, by `flow/deployment`, as the server stores it. Imports Prefect and the flows."""
    found = yaml.safe_load(path.read_text())
    bodies = [_body(row, found["pull"], places) for row in found["deployments"]]
    return {f"{flow}/{body['name']}": body for flow, body in bodies}


def apply(api: PrefectApi, bodies: dict[str, Json]) -> None:
    """Create or update what has changed since the last time.

    What a person paused or changed in the UI stays so until the file itself changes.
    """
    _create(api, "/work_pools/", {"name": POOL, "type": "process", "concurrency_limit": RUNS_AT_ONCE})
    _create(api, "/v2/concurrency_limits/", {"name": CORES_LIMIT, "limit": 1})
    for name, body in bodies.items():
        _deploy(api, name, body)


def module_path(entrypoint: str) -> str:
    """`flows/train_loop.py:train_loop` as the dotted name that the engine imports."""
    path, _, name = entrypoint.partition(":")
    return f"{path.removesuffix('.py').replace('/', '.')}.{name}"


def _deploy(api: PrefectApi, name: str, body: Json) -> None:
    version = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]
    try:
        unchanged = api.deployment(name)["version"] == version
    except Refused as refused:
        if refused.status != NOT_FOUND:
            raise
        unchanged = False
    if not unchanged:
        flow_id = api.call("POST", "/flows/", {"name": name.partition("/")[0]})["id"]
        api.call("POST", "/deployments/", {**body, "version": version, "flow_id": flow_id})


def _body(row: Json, pull: list[Json], places: Places) -> tuple[str, Json]:
    """The flow's name, and what the server stores; the run form follows the flow's own signature."""
    from prefect.utilities.callables import parameter_schema

    entrypoint = module_path(row["entrypoint"])
    flow = pkgutil.resolve_name(":".join(entrypoint.rsplit(".", 1)))
    limit = row.get("concurrency_limit", {})
    body: Json = {
        "name": row["name"],
        "entrypoint": entrypoint,
        "description": row.get("description", flow.description),
        "tags": row["tags"],
        "parameters": row["parameters"],
        "parameter_openapi_schema": parameter_schema(flow).model_dump_for_openapi(),
        "enforce_parameter_schema": True,
        "pull_steps": _filled(pull, {"{{ $PWD }}": str(ROOT)}),
        "job_variables": {"working_dir": str(ROOT), "env": places.environment(), **UNTIED},
        "work_pool_name": row["work_pool"]["name"],
        "schedules": [_schedule(each) for each in row.get("schedules", ())],
    }
    if limit:
        body["concurrency_limit"] = limit["limit"]
        body["concurrency_options"] = {"collision_strategy": limit["collision_strategy"]}
    return flow.name, body


def _schedule(row: Json) -> Json:
    return {"schedule": {"cron": row["cron"], "timezone": row["timezone"]}, "active": row["active"]}


def _filled(value: Any, known: dict[str, str]) -> Any:
    """Copy of nested lists and dicts with known strings replaced."""
    if isinstance(value, dict):
        return {key: _filled(item, known) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, known) for item in value]
    return known.get(value, value) if isinstance(value, str) else value


def _create(api: PrefectApi, path: str, body: Json) -> None:
    """Make it unless it exists; a limit that a person changed stays as it is."""
    try:
        api.call("POST", path, body)
    except Refused as refused:
        if refused.status != CONFLICT:
            raise
