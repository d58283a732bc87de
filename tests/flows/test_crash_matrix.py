"""kill -9 at a random moment in every stage, then the same command again: nothing lost, nothing twice, no litter.

The quick suite takes a seeded sample of the matrix, `./vlaloop test --all` the whole of it.
"""

import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from data_lake.gc import find_garbage, remove
from tasks.catalogue import LOOP
from tasks.events import read_events
from tests.flows.comparison import contents, records_by_stage
from tests.flows.loop_runner import run_plainly

ROOT = Path(__file__).parents[2]
POINTS = [(stage, point) for stage in LOOP for point in range(3)]
SAMPLE = random.Random(20).sample(POINTS, 3)
MATRIX = [pytest.param(*case, marks=() if case in SAMPLE else pytest.mark.slow) for case in POINTS]


def without_stage(smoke: tuple[Path, Path], stage: str, folder: Path) -> tuple[Path, Path]:
    """A copy of the finished smoke lake in which `stage` and what follows was never built."""
    lake, home = folder / "lake", folder / ".vlaloop"
    shutil.copytree(smoke[0], lake)
    shutil.copytree(smoke[1], home)
    shutil.rmtree(lake / "runs")
    shutil.rmtree(home / "runs")
    order = list(LOOP)
    for later in order[order.index(stage) :]:
        shutil.rmtree(lake / later)
    if order.index(stage) <= order.index("ingest"):
        shutil.rmtree(lake / "datasets")
    shutil.rmtree(lake / "registry", ignore_errors=True)
    for path in home.glob("mlflow*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return lake, home


def kill_in(stage: str, after_s: float, lake: Path, home: Path) -> None:
    """Start the loop and SIGKILL it `after_s` seconds into `stage`."""
    command = [sys.executable, "-m", "tests.flows.loop_runner", str(lake), str(home), "killed"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as builder:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and builder.poll() is None:
            started = [event for event in read_events(home, "killed") if event["stage"] == stage]
            if started:
                time.sleep(max(0.0, started[0]["t"] + after_s - time.time()))
                break
            time.sleep(0.02)
        builder.kill()


@pytest.mark.parametrize(("stage", "point"), MATRIX)
def test_killed_anywhere_the_loop_ends_as_if_nothing_had_happened(
    smoke_lake: tuple[Path, Path], tmp_path: Path, stage: str, point: int
) -> None:
    undisturbed = records_by_stage(smoke_lake[0])
    lake, home = without_stage(smoke_lake, stage, tmp_path)
    seconds = undisturbed[stage]["provenance"]["seconds"]
    kill_in(stage, seconds * random.Random(f"{stage}{point}").uniform(0.05, 0.95), lake, home)
    run_plainly(lake, home, "again")

    found = records_by_stage(lake)
    assert set(found) == set(undisturbed)
    for name, record in found.items():
        assert record["fingerprint"] == undisturbed[name]["fingerprint"]
        assert contents(record) == contents(undisturbed[name]), name
    built = [
        event["stage"] for run in ("killed", "again") for event in read_events(home, run) if event["event"] == "built"
    ]
    assert len(built) == len(set(built))
    remove(find_garbage(lake, grace_s=0))
    assert_no_orphans(lake, found)


def assert_no_orphans(lake: Path, found: dict[str, dict[str, Any]]) -> None:
    """Every attempt folder that is left is one that a record names."""
    for stage, record in found.items():
        slot = lake / stage / record["fingerprint"]
        named = {name.split("/")[1] for name in record["files"] if name.startswith("attempts/")}
        assert {path.name for path in (slot / "attempts").iterdir()} == (named or {str(record["attempt"])})
    assert not list(lake.rglob(".tmp-*"))
