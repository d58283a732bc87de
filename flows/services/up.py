"""`up` and `down`: what is not running is started, what died is restarted, what runs is left alone."""

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from errors import UserError
from flows.api import DIRECT, Json, PrefectApi, Refused
from flows.places import ROOT, Places
from flows.services import ledger
from flows.services.alive import Started, end_stray_servers, engines, left_behind, terminate
from flows.services.commands import DEFAULT_PORTS, POOL, Command, commands, prefect_home
from flows.services.ledger import LOOPBACK, Service

Say = Callable[[str, str], None]
"""(service, what is happening), called about once a second while something is waited for."""

HEALTHY_WITHIN_S = 240.0
ORDER = ("prefect", "mlflow", "worker", "adopter")
STOP_ORDER = ("adopter", "worker", "mlflow", "prefect")
"""The adopter first: it would restart the worker. The server last: the others report to it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """One service as a person sees it. state: started | running | restarted | stopped | down."""

    name: str
    state: str
    url: str
    pid: int
    log: str


def up(places: Places, say: Say) -> list[Status]:
    """Start what is missing and apply the deployments. Raises `UserError` UP-001 or UP-002 with the log's end."""
    with ledger.locked(places.home):
        _clear(places.home, ("prefect", "mlflow"))  # the worker's children may be runs, which the adopter minds
        ports = {name: _port(places.home, name) for name in DEFAULT_PORTS}
        planned = commands(places, ports)
        states = {name: _ensure(places.home, name, planned[name], ports[name]) for name in ("prefect", "mlflow")}
        bodies = _declared(places)  # imports for seconds, while the servers start anyway
        _wait(places.home, "prefect", lambda url: PrefectApi(url=f"{url}/api", timeout_s=2).is_healthy(), say)
        say("prefect", "applying the deployments")
        _apply(places.home, bodies)
        states |= {name: _ensure(places.home, name, planned[name], None) for name in ("worker", "adopter")}
        _wait(places.home, "mlflow", lambda url: _answers(f"{url}/health"), say)
        _wait(places.home, "worker", lambda _: _worker_online(places.home), say)
        _wait(places.home, "adopter", lambda _: (places.home / "adopter.json").exists(), say)
    return [replace(row, state=states[row.name]) for row in status(places.home)]


def down(home: Path, say: Say, *, grace_s: float = 20.0) -> list[Status]:
    """Stop what `up` started, and the flow runs that it executes; jobs that those have launched go on."""
    with ledger.locked(home):
        _clear(home, STOP_ORDER)
        before = ledger.read(home)
        stopped = [_row(service, "stopped" if service.is_alive() else "down") for service in before.services]
        for name in STOP_ORDER:
            service = before.get(name)
            if service is None:
                continue
            if name == "worker":
                _stop_runs(home, say)
            say(name, "stopping")
            terminate(service.started, grace_s=2.0 if name == "worker" else grace_s)
            before = before.without(name)
            ledger.write(home, before)
    (home / "adopter.json").unlink(missing_ok=True)
    return stopped


def status(home: Path) -> list[Status]:
    """What the ledger knows, in the order in which it was started."""
    services = sorted(ledger.read(home).services, key=lambda service: ORDER.index(service.name))
    return [_row(service, "running" if service.is_alive() else "down") for service in services]


def start(home: Path, name: str, command: Command, port: int | None) -> Service:
    """Start one service in a session of its own, so that it survives the terminal, and write it down."""
    log = home / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(
            command.argv,
            env=command.env,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    url = f"http://{LOOPBACK}:{port}" if port else ""
    service = Service(name=name, started=Started.now(child.pid), url=url, log=str(log))
    ledger.write(home, ledger.read(home).having(service, port))
    return service


def _clear(home: Path, names: tuple[str, ...]) -> None:
    """End what services that died have left behind, and servers of runs that were killed: they hold ports."""
    known = ledger.read(home)
    for service in filter(None, map(known.get, names)):
        for found in left_behind(service.started, home):
            terminate(found, grace_s=2.0)
    end_stray_servers(prefect_home(home))


def _port(home: Path, name: str) -> int:
    """The port of the running service, else the one that it had last time if it is free, else the next."""
    known = ledger.read(home)
    running = known.get(name)
    remembered = known.port(name) or DEFAULT_PORTS[name]
    return remembered if running is not None and running.is_alive() else ledger.free_port(remembered)


def _ensure(home: Path, name: str, command: Command, port: int | None) -> str:
    known = ledger.read(home).get(name)
    if known is not None and known.is_alive():
        return "running"
    start(home, name, command, port)
    return "started" if known is None else "restarted"


def _wait(home: Path, name: str, is_ready: Callable[[str], bool], say: Say) -> None:
    service = ledger.read(home).get(name)
    if service is None:
        raise LookupError(name)
    began = time.monotonic()
    while not is_ready(service.url):
        waited = time.monotonic() - began
        if not service.is_alive() or waited > HEALTHY_WITHIN_S:
            raise UserError(
                "UP-001" if not service.is_alive() else "UP-002",
                f"{name} {'ended' if not service.is_alive() else 'does not answer'} after {waited:.0f} s",
                where=f"{service.log}: {_last_line(Path(service.log))}",
                next_step="mend what the log says, then ./vlaloop up again; ./vlaloop down stops the rest",
            )
        say(name, f"starting · {waited:.0f} s")
        time.sleep(0.5)


def _declared(places: Places) -> dict[str, Json]:
    from flows.deploy import declared

    return declared(places)


def _apply(home: Path, bodies: dict[str, Json]) -> None:
    from flows.deploy import apply

    url = ledger.server_url(home)
    if url is None:
        raise UserError("UP-001", "the Prefect server ended", where=str(home / "logs" / "prefect.log"))
    apply(PrefectApi(url=url), bodies)


def _stop_runs(home: Path, say: Say) -> None:
    """SIGTERM to the flow runs of this home: Prefect marks them crashed, and a Retry continues them."""
    running = [Started.now(engine.pid) for engine in engines() if engine.home == str(home)]
    if running:
        say("worker", f"stopping {len(running)} flow run{'s' if len(running) > 1 else ''}")
    for started in running:
        terminate(started, grace_s=10.0)


def _worker_online(home: Path) -> bool:
    url = ledger.server_url(home)
    if url is None:
        return False
    try:
        workers = PrefectApi(url=url).call("POST", f"/work_pools/{POOL}/workers/filter", {})
    except (OSError, Refused):
        return False
    return any(worker["status"] == "ONLINE" for worker in workers)


def _answers(url: str) -> bool:
    try:
        with DIRECT.open(url, timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


def _row(service: Service, state: str) -> Status:
    return Status(name=service.name, state=state, url=service.url, pid=service.started.pid, log=service.log)


def _last_line(path: Path) -> str:
    lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "(empty)"
