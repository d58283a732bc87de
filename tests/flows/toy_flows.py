"""Flows that cost nothing: one that fails until it is mended, one that waits."""

import time
from pathlib import Path

from prefect import task

from flows.server import loop_flow


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
