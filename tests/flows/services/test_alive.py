"""Processes are told by pid and start time, by their command, and by what their environment says of them."""

import os
import subprocess
import sys
import time
from pathlib import Path

from flows.places import ROOT
from flows.services.alive import Started, end_stray_servers, engines


def test_a_server_whose_run_was_killed_is_ended_by_the_next(tmp_path: Path) -> None:
    program = f"""
import os, subprocess, sys
from flows.services.alive import marked_as_mine
with marked_as_mine():
    env = {{**os.environ, "PREFECT_HOME": {str(tmp_path)!r}}}
    print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], env=env).pid, flush=True)
sys.stdin.read()
"""
    run = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    server = Started.now(int(run.stdout.readline()))
    end_stray_servers(tmp_path)
    assert server.is_alive()
    run.kill()
    run.wait()
    end_stray_servers(tmp_path)
    assert not server.is_alive()


def test_engines_are_told_by_command_and_run_id(tmp_path: Path) -> None:
    program = "import sys, time; sys.argv; time.sleep(60)"
    env = {**os.environ, "PREFECT__FLOW_RUN_ID": "run-1", "VLALOOP_HOME": str(tmp_path)}
    engine = subprocess.Popen([sys.executable, "-c", program, "prefect.engine"], env=env)
    job = subprocess.Popen([sys.executable, "-c", program, "some.worker"], env=env)
    try:
        deadline = time.monotonic() + 5
        found = []
        while (
            not found and time.monotonic() < deadline
        ):  # a fork shows its parent's command until it has become its own
            found = [each for each in engines() if each.run_id == "run-1"]
        assert [(each.pid, each.home) for each in found] == [(engine.pid, str(tmp_path))]
    finally:
        for each in (engine, job):
            each.kill()
            each.wait()
