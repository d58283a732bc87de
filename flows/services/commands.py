"""The command line and the environment of each service that `up` starts. Values only; nothing runs here."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from flows.places import ROOT, Places
from flows.services.ledger import LOOPBACK

POOL = "vlaloop"
CORES_LIMIT = "vlaloop-cores"
DEFAULT_PORTS = {"prefect": 4200, "mlflow": 5000}

QUIET = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}

LEASES_ON_DISK = {"PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem"}
"""Leases that only the server's memory knows would hold their slots for ever once the server has restarted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    argv: tuple[str, ...]
    env: dict[str, str]


def prefect_home(home: Path) -> Path:
    return home / "prefect"


def _environment(places: Places, prefect_port: int) -> dict[str, str]:
    """Prefect's own variables of the caller are dropped: they may point at another server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    bypass = ",".join(filter(None, (kept.get("NO_PROXY"), LOOPBACK, "localhost")))
    return {
        **kept,
        **places.environment(),
        **QUIET,
        **LEASES_ON_DISK,
        "NO_PROXY": bypass,
        "no_proxy": bypass,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), kept.get("PYTHONPATH")))),
        "PYTHONUNBUFFERED": "1",
        "PREFECT_HOME": str(prefect_home(places.home)),
        "PREFECT_API_URL": f"http://{LOOPBACK}:{prefect_port}/api",
        "PREFECT_CLI_PROMPT": "false",
    }


def commands(places: Places, ports: dict[str, int]) -> dict[str, Command]:
    """By service name, in the order in which they start."""
    shared = _environment(places, ports["prefect"])
    python = sys.executable
    served = {
        "PREFECT_SERVER_API_HOST": LOOPBACK,
        "PREFECT_SERVER_API_PORT": str(ports["prefect"]),
        "PREFECT_UI_API_URL": shared["PREFECT_API_URL"],
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": f"http://{LOOPBACK}:{ports['prefect']}",
    }
    server = ("uvicorn", "flows.services.prefect_app:create_app", "--factory", "--app-dir", str(ROOT))
    listen = ("--host", LOOPBACK, "--port", str(ports["prefect"]), "--log-level", "warning")
    worker = ("prefect", "worker", "start", "--pool", POOL, "--type", "process", "--name", "vlaloop")
    argvs: dict[str, tuple[str, ...]] = {
        "prefect": (*server, *listen),
        "mlflow": _mlflow(places.home, ports["mlflow"]),
        "worker": worker,
        "adopter": ("flows.adopter",),
    }
    extra = {"prefect": served, "worker": {"PREFECT_WORKER_QUERY_SECONDS": "2"}, "mlflow": _MLFLOW_QUIET}
    return {
        name: Command(argv=(python, "-m", *argv), env={**shared, **extra.get(name, {})}) for name, argv in argvs.items()
    }


_MLFLOW_QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}


def _mlflow(home: Path, port: int) -> tuple[str, ...]:
    """One worker: more cost half a gigabyte each and serve nobody here."""
    store = ("--backend-store-uri", f"sqlite:///{home / 'mlflow.db'}")
    artifacts = ("--default-artifact-root", (home / "mlflow-artifacts").as_uri(), "--no-serve-artifacts")
    return ("mlflow", "server", *store, *artifacts, "--host", LOOPBACK, "--port", str(port), "--workers", "1")
