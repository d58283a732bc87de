"""The flow on a real, temporary Prefect server: a finished loop is served stage by stage from the lake."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from tasks.catalogue import LOOP
from tasks.events import read_events
from tasks.launchers.local import members
from tests.waiting import eventually

SCRIPT = """
import sys
from flows.train_loop import train_loop
version = train_loop("smoke", lake=sys.argv[1], home=sys.argv[2])
print(type(version).__name__, version.name)
print(type(train_loop("smoke", lake=sys.argv[1], home=sys.argv[2], until="pack")).__name__)
"""


def test_a_finished_loop_answers_from_the_lake(smoke_lake: tuple[Path, Path], tmp_path: Path, root: Path) -> None:
    """In a process of its own, as from a script: Prefect remembers the first server that a process has met."""
    lake, home = tmp_path / "lake", tmp_path / ".vlaloop"
    shutil.copytree(smoke_lake[0], lake)
    shutil.copytree(smoke_lake[1], home)
    command = [sys.executable, "-c", SCRIPT, str(lake), str(home)]
    called = subprocess.run(command, cwd=root, env={**os.environ}, capture_output=True, text=True, check=True)
    assert called.stdout.splitlines()[-2:] == ["ModelVersionRef smoke", "PackedRef"]
    runs = [path.parent.name for path in home.glob("runs/*/executor.json")]
    cached = [[e["stage"] for e in read_events(home, run) if e["event"] == "cached"] for run in runs]
    assert sorted(cached, key=len) == [list(LOOP)[:4], list(LOOP)]


def test_ctrl_c_ends_everything_and_says_so(smoke_lake: tuple[Path, Path], tmp_path: Path, root: Path) -> None:
    """The terminal sends it to the whole group: to the command, its server and its workers alike."""
    lake, home = tmp_path / "lake", tmp_path / ".vlaloop"
    shutil.copytree(smoke_lake[0], lake)
    shutil.rmtree(lake / "train")
    command = [sys.executable, "-m", "flows.cli", "run", "smoke", "--json", "--set", "train.num_steps=5000"]
    command += ["--lake", str(lake), "--home", str(home)]
    terminal = subprocess.Popen(
        command, cwd=root, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    eventually(lambda: any(lake.glob("train/*/attempts/*/metrics.jsonl")), 120)
    (job,) = (json.loads(path.read_text()) for path in lake.glob("train/*/job.json"))
    os.killpg(terminal.pid, signal.SIGINT)
    shown, told = terminal.communicate(timeout=40)
    assert terminal.returncode == 1
    assert json.loads(shown.splitlines()[-1])["error"]["code"] == "RUN-003"
    assert "the same command continues" in told and "Traceback" not in told
    assert not members(job["handle"])
