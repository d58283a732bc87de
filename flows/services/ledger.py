"""`services.json`: what `up` started, with pid, start time, port and log, so that `down` stops that and nothing else.

Standard library only: `run` looks here to learn whether a server is up, before it imports anything heavy.
"""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from errors import UserError
from flows.services.alive import Started

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """One running service; `url` is empty for those that listen nowhere."""

    name: str
    started: Started
    url: str
    log: str

    def is_alive(self) -> bool:
        return self.started.is_alive()


@dataclass(frozen=True, kw_only=True, slots=True)
class Ledger:
    """`ports` are remembered after `down`, so that bookmarks keep working."""

    services: tuple[Service, ...] = ()
    ports: tuple[tuple[str, int], ...] = ()

    def get(self, name: str) -> Service | None:
        return next((service for service in self.services if service.name == name), None)

    def port(self, name: str) -> int | None:
        return dict(self.ports).get(name)

    def having(self, service: Service, port: int | None = None) -> "Ledger":
        kept = tuple(other for other in self.services if other.name != service.name)
        ports = {**dict(self.ports), **({service.name: port} if port else {})}
        return replace(self, services=(*kept, service), ports=tuple(ports.items()))

    def without(self, name: str) -> "Ledger":
        return replace(self, services=tuple(other for other in self.services if other.name != name))


def read(home: Path) -> Ledger:
    """An absent file is an empty ledger."""
    try:
        stored = json.loads((home / "services.json").read_text())
    except FileNotFoundError:
        return Ledger()
    except json.JSONDecodeError as error:
        raise UserError(
            "UP-003",
            f"the list of running services is torn: {error}",
            where=str(home / "services.json"),
            next_step="end what still runs of them (pids are in logs/), delete the file, and ./vlaloop up",
        ) from None
    services = tuple(
        Service(name=row["name"], started=Started(**row["started"]), url=row["url"], log=row["log"])
        for row in stored["services"]
    )
    return Ledger(services=services, ports=tuple((name, port) for name, port in stored["ports"]))


def write(home: Path, ledger: Ledger) -> None:
    """Whole or not at all: written beside and renamed."""
    home.mkdir(parents=True, exist_ok=True)
    beside = home / f"services.json.{os.getpid()}"
    beside.write_text(json.dumps(asdict(ledger), indent=1) + "\n")
    beside.replace(home / "services.json")


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """One `up`, `down` or adopter at a time changes the ledger; the lock ends with its holder."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "services.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def server_url(home: Path) -> str | None:
    """Address of the Prefect API that `up` started for this home, when its process is alive."""
    server = read(home).get("prefect")
    return f"{server.url}/api" if server is not None and server.is_alive() else None


def free_port(preferred: int) -> int:
    """`preferred`, or the next port that nobody listens on."""
    for port in range(preferred, preferred + 200):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port from {preferred} to {preferred + 199}")
