"""Flows that cost nothing: one that fails until it is mended, one that waits, one whose stage holds the cores."""

import time
from pathlib import Path

from prefect import task

from flows.server import loop_flow, places_of, present_run
from tasks.build import Stage
from tasks.catalogue import CORES
from tasks.runtime import Runtime
from tests.tasks.fake_stages import CountSpec

COUNT = Stage(fn="tests.tasks.fake_stages:count", version=1, retries=0, resources=CORES)


@task
def note(path: str) -> int:
    """Append a line; returns how many there are."""
    with Path(path).open("a") as file:
        file.write("here\n")
    return len(Path(path).read_text().splitlines())


@loop_flow(name="toy")
def toy(folder: str, lake: str | None = None, home: str | None = None) -> int:
    """Fails until {folder}/mended exists; returns how often it was tried."""
    tries = note(f"{folder}/tries")
    if not (Path(folder) / "mended").exists():
        raise ValueError("not mended yet")
    return tries


@loop_flow(name="toy-wait")
def toy_wait(folder: str, lake: str | None = None, home: str | None = None) -> int:
    """Waits for {folder}/mended, for a minute at most."""
    tries = note(f"{folder}/tries")
    deadline = time.monotonic() + 60
    while not (Path(folder) / "mended").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    return tries


@loop_flow(name="toy-hold")
def toy_hold(folder: str, lake: str | None = None, home: str | None = None) -> None:
    """Counts for a minute in a stage that occupies the cores."""
    run = present_run()
    runtime = Runtime(lake=Path(folder) / "lake", home=places_of(run.parameters).home, run_id=run.run_id)
    COUNT(CountSpec(steps=600, pause_s=0.1), runtime=runtime)
