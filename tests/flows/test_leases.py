"""A dead run's concurrency slot is free at once; Prefect alone would wait a minute for its lease to run out."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flows.api import PrefectApi
from flows.leases import free_leases_of_dead_runs
from flows.places import ROOT, Places
from flows.services.commands import CORES_LIMIT
from tests.waiting import eventually


def occupied(api: PrefectApi) -> int:
    return api.call("GET", f"/v2/concurrency_limits/{CORES_LIMIT}")["active_slots"]


@pytest.mark.parametrize("helped", [True, False], ids=["by hand", "by the adopter of up"])
def test_a_killed_run_gives_back_the_cores(services: Places, api: PrefectApi, tmp_path: Path, helped: bool) -> None:
    program = f"from tests.flows.toy_flows import toy_hold; toy_hold({str(tmp_path)!r}, home={str(services.home)!r})"
    terminal = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    eventually(lambda: occupied(api) == 1)
    assert free_leases_of_dead_runs(services, api) == []
    assert occupied(api) == 1
    os.kill(terminal.pid, signal.SIGKILL)
    terminal.wait()
    if helped:
        free_leases_of_dead_runs(services, api)
    eventually(lambda: occupied(api) == 0, within_s=15)
