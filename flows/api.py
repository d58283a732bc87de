"""The few calls of Prefect's REST API that vlaloop makes itself; standard library only."""

import json
import random
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""The server is on this machine: never through a proxy."""

BUSY = 503
"""What Prefect answers while SQLite is locked."""

PAUSES_S = (0.1, 0.3, 1.0, 3.0, 6.0)

TERMINAL = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")


class Refused(Exception):
    """The server answered, and said no: status code and what it said."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"{status}: {body[:500]}")
        self.status = status
        self.body = body


@dataclass(frozen=True, kw_only=True, slots=True)
class PrefectApi:
    """`url` ends in /api. Raises `OSError` when nobody answers, `Refused` on an error status."""

    url: str
    timeout_s: float = 15.0

    def call(self, method: str, path: str, body: Json | None = None) -> Any:
        """The decoded answer. A server whose database is busy (503) is asked again, for about ten seconds."""
        for pause_s in PAUSES_S:
            try:
                return self._once(method, path, body)
            except Refused as refused:
                if refused.status != BUSY:
                    raise
            time.sleep(pause_s * random.uniform(0.5, 1.5))
        return self._once(method, path, body)

    def _once(self, method: str, path: str, body: Json | None) -> Any:
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/json", "accept": "application/json"},
        )
        try:
            with DIRECT.open(request, timeout=self.timeout_s) as answer:
                content = answer.read()
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read().decode(errors="replace")) from error
        return json.loads(content) if content else None

    def is_healthy(self) -> bool:
        try:
            return self.call("GET", "/health") is True
        except (OSError, ValueError, Refused):
            return False

    def flow_run(self, run_id: str) -> Json:
        return self.call("GET", f"/flow_runs/{run_id}")

    def flow_runs(self, run_filter: Json, *, flows: list[str], limit: int = 50) -> list[Json]:
        body = {"flow_runs": run_filter, "flows": {"name": {"any_": flows}}, "limit": limit}
        return self.call("POST", "/flow_runs/filter", body)

    def set_state(self, run_id: str, kind: str, name: str, message: str) -> str:
        """Force a state; returns the orchestrator's answer (`ACCEPT`, …)."""
        state = {"type": kind, "name": name, "message": message}
        return self.call("POST", f"/flow_runs/{run_id}/set_state", {"state": state, "force": True})["status"]

    def deployment(self, name: str) -> Json:
        """By `flow/deployment`; `Refused` 404 when there is none."""
        return self.call("GET", f"/deployments/name/{name}")

    def start_deployment(self, name: str, parameters: Json, *, tags: tuple[str, ...] = (), key: str = "") -> Json:
        """A new flow run of `flow/deployment`; the same `key` gives the same run."""
        body: Json = {"parameters": parameters, "tags": list(tags), "state": {"type": "SCHEDULED"}}
        if key:
            body["idempotency_key"] = key
        return self.call("POST", f"/deployments/{self.deployment(name)['id']}/create_flow_run", body)
