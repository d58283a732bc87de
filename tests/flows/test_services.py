"""`up` starts what is missing, on this machine only; `down` stops exactly that."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from errors import UserError
from flows.api import DIRECT, PrefectApi
from flows.places import Places
from flows.services import ledger
from flows.services.alive import Started, terminate
from flows.services.commands import commands
from flows.services.ledger import Ledger, Service
from flows.services.prefect_app import LocalOnly
from flows.services.up import down, status, up
from tests.waiting import eventually

SLEEP = (sys.executable, "-c", "import time; time.sleep(60)")


def silent(_name: str, _text: str) -> None:
    """Nobody watches."""


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(SLEEP, start_new_session=True)


def service(name: str, started: Started) -> Service:
    return Service(name=name, started=started, url="", log="log")


# --- without services ---------------------------------------------------------------------------------------------


def test_a_pid_alone_names_nobody() -> None:
    me = Started.now(os.getpid())
    assert me.is_alive()
    assert not replace(me, since="1").is_alive()
    assert not Started(pid=2**22 + 1, since="").is_alive()


def test_terminate_kills_what_ignores_sigterm_and_its_group(tmp_path: Path) -> None:
    program = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        f"child = subprocess.Popen({list(SLEEP)!r}); open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid));"
        "time.sleep(60)"
    )
    leader = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text():
        time.sleep(0.02)
    child = Started.now(int((tmp_path / "child").read_text()))
    assert terminate(Started.now(leader.pid), grace_s=0.3)
    leader.wait(5)
    deadline = time.monotonic() + 5
    while child.is_alive() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not child.is_alive()


def test_down_stops_what_the_ledger_names_and_nobody_else(tmp_path: Path) -> None:
    """A recycled pid (same number, another start time) is left alone."""
    mine, stranger = sleeper(), sleeper()
    recycled = Started(pid=stranger.pid, since="1")
    ledger.write(tmp_path, Ledger(services=(service("worker", Started.now(mine.pid)), service("adopter", recycled))))
    rows = down(tmp_path, silent, grace_s=2.0)
    assert {row.name: row.state for row in rows} == {"worker": "stopped", "adopter": "down"}
    assert mine.wait(5) is not None
    assert stranger.poll() is None
    assert ledger.read(tmp_path).services == ()
    stranger.kill()
    stranger.wait()


def test_down_twice_is_nothing(tmp_path: Path) -> None:
    assert down(tmp_path, silent) == []


def test_ledger_remembers_ports_after_down(tmp_path: Path) -> None:
    started = Started.now(os.getpid())
    ledger.write(tmp_path, Ledger().having(service("prefect", started), 4207))
    assert ledger.read(tmp_path).get("prefect") == service("prefect", started)
    ledger.write(tmp_path, ledger.read(tmp_path).without("prefect"))
    assert (ledger.read(tmp_path).get("prefect"), ledger.read(tmp_path).port("prefect")) == (None, 4207)


def test_server_url_only_while_it_lives(tmp_path: Path) -> None:
    assert ledger.server_url(tmp_path) is None
    here = Service(name="prefect", started=Started.now(os.getpid()), url="http://127.0.0.1:1", log="")
    ledger.write(tmp_path, Ledger(services=(here,)))
    assert ledger.server_url(tmp_path) == "http://127.0.0.1:1/api"
    ledger.write(tmp_path, Ledger(services=(replace(here, started=Started(pid=os.getpid(), since="1")),)))
    assert ledger.server_url(tmp_path) is None


def test_a_taken_port_is_passed_over() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert ledger.free_port(port) > port


def test_services_get_no_prefect_settings_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://elsewhere:4200/api")
    monkeypatch.setenv("PREFECT_LOGGING_LEVEL", "DEBUG")
    planned = commands(Places(lake=tmp_path, home=tmp_path), {"prefect": 4321, "mlflow": 5432})
    for command in planned.values():
        assert command.env["PREFECT_API_URL"] == "http://127.0.0.1:4321/api"
        assert "PREFECT_LOGGING_LEVEL" not in command.env
        assert "127.0.0.1" in command.env["NO_PROXY"].split(",")


@pytest.mark.parametrize(
    ("headers", "is_local"),
    [
        ([(b"host", b"127.0.0.1:4200")], True),
        ([(b"host", b"localhost:4200"), (b"origin", b"http://localhost:4200")], True),
        ([(b"host", b"evil.example:4200")], False),
        ([(b"host", b"127.0.0.1:4200"), (b"origin", b"http://evil.example")], False),
        ([(b"host", b"127.0.0.1:4200"), (b"origin", b"null")], False),
        ([], False),
    ],
)
def test_only_this_server_is_local(headers: list[tuple[bytes, bytes]], is_local: bool) -> None:
    passed, sent = [], []

    async def application(*_: object) -> None:
        passed.append(True)

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    guarded = LocalOnly(application, frozenset({b"127.0.0.1:4200", b"localhost:4200"}))
    asyncio.run(guarded({"type": "http", "headers": headers}, None, send))
    assert bool(passed) == is_local
    assert [message.get("status") for message in sent[:1]] == ([] if is_local else [403])


GROUP = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("is_ours", [True, False])
def test_down_ends_what_a_dead_service_has_left_behind(tmp_path: Path, is_ours: bool) -> None:
    env = {**os.environ, "VLALOOP_HOME": str(tmp_path) if is_ours else "/elsewhere"}
    leader = subprocess.Popen(
        [sys.executable, "-c", GROUP], env=env, start_new_session=True, stdout=subprocess.PIPE, text=True
    )
    assert leader.stdout is not None
    child = Started.now(int(leader.stdout.readline()))
    try:
        ledger.write(tmp_path, Ledger(services=(service("mlflow", Started.now(leader.pid)),)))
        leader.kill()
        leader.wait()
        down(tmp_path, silent)
        assert child.is_alive() is not is_ours
    finally:
        leader.kill()
        if child.is_alive():
            os.kill(child.pid, signal.SIGKILL)


def test_a_torn_ledger_is_named(tmp_path: Path) -> None:
    (tmp_path / "services.json").write_text('{"serv')
    with pytest.raises(UserError, match="(?s)UP-003.*services.json"):
        down(tmp_path, silent)


# --- with services ------------------------------------------------------------------------------------------------


def test_up_again_leaves_everything_alone(services: Places) -> None:
    before = {row.name: row.pid for row in status(services.home)}
    rows = up(services, silent)
    assert {row.name: row.pid for row in rows} == before
    assert {row.state for row in rows} == {"running"}


def test_every_listener_is_loopback(services: Places) -> None:
    """Of the services and of all their children."""
    listening = []
    for row in status(services.home):
        leader = psutil.Process(row.pid)
        for each in (leader, *leader.children(recursive=True)):
            listening += [
                (row.name, found.laddr.ip)
                for found in each.net_connections("inet")
                if found.status == psutil.CONN_LISTEN
            ]
    assert {name for name, _ in listening} >= {"prefect", "mlflow"}
    assert {address for _, address in listening} == {"127.0.0.1"}


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}])
@pytest.mark.parametrize(
    ("name", "path"),
    [("prefect", "/api/flow_runs/filter"), ("prefect", "/"), ("mlflow", "/api/2.0/mlflow/experiments/search")],
)
def test_foreign_pages_are_refused(services: Places, name: str, path: str, headers: dict[str, str]) -> None:
    url = next(row.url for row in status(services.home) if row.name == name)
    content = {"content-type": "application/json", **headers}
    request = urllib.request.Request(url + path, data=b"{}", headers=content, method="POST")
    with pytest.raises(urllib.error.HTTPError) as refused:
        DIRECT.open(request, timeout=10)
    assert refused.value.code == 403


def test_deployments_pool_and_limit_are_there(api: PrefectApi) -> None:
    found = api.call("POST", "/deployments/filter", {})
    assert {each["name"] for each in found} == {"tiny", "smoke", "gr1", "inbox", "nightly"}
    assert {each["work_pool_name"] for each in found} == {"vlaloop"}
    assert api.call("GET", "/v2/concurrency_limits/vlaloop-cores")["limit"] == 1
    tiny = next(each for each in found if each["name"] == "tiny")
    fields = tiny["parameter_openapi_schema"]["properties"]
    assert {"recipe", "changes", "profile"} <= fields.keys()
    assert tiny["schedules"][0]["schedule"]["cron"] == "0 2 * * *"


def test_what_a_person_paused_stays_paused(services: Places, api: PrefectApi) -> None:
    nightly = api.deployment("nightly-eval/nightly")
    api.call("POST", f"/deployments/{nightly['id']}/pause_deployment")
    up(services, silent)
    assert api.deployment("nightly-eval/nightly")["paused"]
    api.call("POST", f"/deployments/{nightly['id']}/resume_deployment")


def test_a_killed_worker_comes_back_by_itself(services: Places) -> None:
    """The adopter starts another one; how a run fares meanwhile is shown in test_retry.py."""
    worker = next(row for row in status(services.home) if row.name == "worker")
    os.kill(worker.pid, signal.SIGKILL)

    def another() -> bool:
        now = next(row for row in status(services.home) if row.name == "worker")
        return now.pid != worker.pid and now.state == "running"

    eventually(another, within_s=15)


def test_services_outlive_their_terminal(services: Places) -> None:
    """Each leads a session of its own."""
    for row in status(services.home):
        assert os.getsid(row.pid) == row.pid
    assert json.loads((services.home / "services.json").read_text())["services"]
