"""Spread over a cluster: in order, bounded, and whole although a node dies. Each test in a process of its own: Ray
joins one cluster per process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows.places import ROOT

QUIET = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}


def run(*arguments: object, module: str = "ray_scripts") -> dict:
    """The JSON that a module prints last."""
    command = [sys.executable, "-m", f"tests.data_lake.{module}", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **QUIET}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_results_come_in_order_and_no_more_than_asked_are_begun() -> None:
    found = run("order")
    assert found["results"] == [number * number for number in range(12)]
    assert found["most_begun"] <= 3
    assert found["raised"] == ["ZeroDivisionError", "LAKE-157"]
    assert not found["joined"]


@pytest.mark.slow
def test_a_cluster_here_is_on_loopback_alone_and_ends_with_the_work(tmp_path: Path) -> None:
    found = run(tmp_path, module="ray_here")
    assert found["listening"] > 4
    assert found["beyond"] == []
    assert (found["raised"], found["done"]) == ("PREP-006 unit 2 bad", 2)
    assert found["left"] == []


@pytest.mark.slow
def test_preprocessing_survives_the_death_of_a_node(tmp_path: Path) -> None:
    """Two nodes; the one that works on a block is killed. The same rows and statistics as Daft gives here."""
    found = run("node_death", tmp_path)
    assert found["died_at_work"]
    assert found["ray"] == found["native"]


@pytest.mark.slow
def test_ingest_waits_for_nodes_and_survives_the_death_of_one_and_of_its_driver(tmp_path: Path) -> None:
    """From no node to two, one of them killed in the middle, another instead; then the driver by SIGKILL, and once
    more. Each time all that readers see, and all that is said, is as from this machine alone."""
    found = run("elastic", tmp_path, module="ray_ingest")
    assert found["waits"] and found["died_at_work"] and found["was_killed"]
    assert found["same"] == [True, True] and found["counts"] == [31, 1]
    assert found["units"] == 16 and found["most_in_flight"] <= 4
