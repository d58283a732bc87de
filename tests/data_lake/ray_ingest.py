"""What test_cluster runs of ingest in processes of their own: each prints its numbers as lines of JSON.

`python -m tests.data_lake.ray_ingest elastic FOLDER` rules a cluster, and begins drivers that ingest there. Units are
of two parts, shelves of one video.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster

from data_lake import examine_afar, shelf_afar
from data_lake.runners import RAY, Runner
from flows.places import ROOT
from tests.data_lake.ray_scripts import STORE
from tests.data_lake.recordings import change_rows, write_v2
from tests.data_lake.seen import content, ingest
from tests.data_lake.test_review import said

LENGTHS = (5, 6, 7, 8) * 8
BAD = 9
MIDDLE = 8
WORKERS = 4
examine_afar.UNIT_PARTS, shelf_afar.SHELF_BYTES = 2, 1


def elastic(folder: str) -> dict[str, Any]:
    """A cluster without CPUs gets two nodes once an ingest waits, loses one in the middle, and gets another; then an
    ingest is killed in the middle."""
    root = Path(folder)
    source = write_v2(root / "source", LENGTHS)
    change_rows(source / f"data/chunk-000/episode_{BAD:06d}.parquet", action=[[0.0, float("nan")]] * LENGTHS[BAD])
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **STORE})
    with _driver(folder, "elastic", cluster) as ingesting:
        time.sleep(5)
        waits = ingesting.poll() is None
        nodes = [_node(cluster) for _ in range(2)]
        _wait(ingesting)
        cluster.remove_node(nodes[0], allow_graceful=False)
        _node(cluster)
        *_, told = _lines(ingesting)
    with _driver(folder, "killed", cluster) as killed:
        _wait(killed)
        killed.send_signal(signal.SIGKILL)
    with _driver(folder, "killed", cluster) as again:
        _lines(again)
    cluster.shutdown()
    ingest(source, root / "native", label="cart")
    seen = {name: (content(root / name), said(root / name)) for name in ("native", "elastic", "killed")}
    return {
        **json.loads(told),
        "waits": waits,
        "was_killed": killed.returncode == -signal.SIGKILL,
        "same": [seen[name] == seen["native"] for name in ("elastic", "killed")],
        "counts": [len(seen["native"][1][name]) for name in ("episodes", "quarantine")],
    }


def driver(folder: str, name: str, address: str) -> dict[str, Any]:
    """Prints the number of each episode, and goes on from the middle when the process that rules has seen it."""

    def at(number: int, *_: Any) -> None:
        print(number, flush=True)
        if number == MIDDLE:
            time.sleep(3)

    root, begun = Path(folder), _counted()
    runner = Runner(name=RAY, workers=WORKERS, address=address)
    ingest(root / "source", root / name, label="cart", runner=runner, on_progress=at)
    return {"units": len(begun), "most_in_flight": max(begun)}


def _driver(folder: str, name: str, cluster: Cluster) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.data_lake.ray_ingest", "driver", folder, name, str(cluster.address)]
    return subprocess.Popen(command, cwd=ROOT, env=dict(os.environ), stdout=subprocess.PIPE, text=True)


def _wait(ingesting: subprocess.Popen[str]) -> None:
    """Until it is in the middle."""
    assert ingesting.stdout is not None
    for line in ingesting.stdout:
        if line.strip() == str(MIDDLE):
            return
    raise AssertionError("it ended before")


def _lines(ingesting: subprocess.Popen[str]) -> list[str]:
    assert ingesting.stdout is not None
    found = ingesting.stdout.read().splitlines()
    assert ingesting.wait() == 0
    return found


def _node(cluster: Cluster) -> Any:
    return cluster.add_node(num_cpus=1, memory=2 << 30, **STORE)


def _counted() -> list[int]:
    """Of each unit of examination when it begins, how many have begun and not been given out, itself included."""
    begun: list[int] = []
    given: set[int] = set()
    units_of, received = examine_afar.units_of, examine_afar._received

    def units(*arguments: Any) -> Any:
        for unit in units_of(*arguments):
            begun.append(len(begun) + 1 - len(given))
            yield unit

    def noted(sent: Any, before: int) -> Any:
        given.add(sent.first)
        return received(sent, before)

    examine_afar.units_of, examine_afar._received = units, noted
    return begun


if __name__ == "__main__":
    scripts: dict[str, Callable[..., dict[str, Any]]] = {"elastic": elastic, "driver": driver}
    print(json.dumps(scripts[sys.argv[1]](*sys.argv[2:])), flush=True)
