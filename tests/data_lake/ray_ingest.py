"""What test_cluster runs of ingest in processes of their own, which print a line of JSON.

`python -m tests.data_lake.ray_ingest elastic FOLDER` rules a cluster, and begins drivers that ingest there. Units are
of two parts, shelves of one video.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

from data_lake import examine_afar, shelf_afar
from data_lake.runners import RAY, Runner
from flows.places import ROOT
from tests.data_lake.ray_scripts import AT_WORK, GO, STORE, _kill_one_at_work
from tests.data_lake.recordings import change_rows, write_v2
from tests.data_lake.seen import content, ingest
from tests.data_lake.test_review import said

LENGTHS = (5, 6, 7, 8) * 8
BAD = 9
MIDDLE, LAST = 16, 99
WORKERS = 4
examined = examine_afar._examined
examine_afar.UNIT_PARTS, shelf_afar.SHELF_BYTES = 2, 1


def elastic(folder: str) -> dict[str, Any]:
    """A cluster without CPUs gets two nodes once an ingest waits, loses one in the middle, and gets another; then an
    ingest is killed in the middle."""
    root = Path(folder)
    source = write_v2(root / "source", LENGTHS)
    change_rows(source / f"data/chunk-000/episode_{BAD:06d}.parquet", action=[[0.0, float("nan")]] * LENGTHS[BAD])
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **STORE})
    with _driver(folder, "elastic", cluster, LAST) as ingesting:
        time.sleep(5)
        waits = ingesting.poll() is None
        nodes, died = [_node(cluster) for _ in range(2)], list[str]()
        _kill_one_at_work(cluster, nodes, root, died)
        _node(cluster)
        told = _told(ingesting)
    with _driver(folder, "killed", cluster, MIDDLE) as killed:
        _told(killed)
    with _driver(folder, "killed", cluster, LAST) as again:
        _told(again)
    cluster.shutdown()
    ingest(source, root / "native", label="cart")
    seen = {name: (content(root / name), said(root / name)) for name in ("native", "elastic", "killed")}
    return {
        **json.loads(told),
        "waits": waits,
        "died_at_work": bool(died),
        "was_killed": killed.returncode == -signal.SIGKILL,
        "same": [seen[name] == seen["native"] for name in ("elastic", "killed")],
        "counts": [len(seen["native"][1][name]) for name in ("episodes", "quarantine")],
    }


def driver(folder: str, name: str, address: str, last: str) -> dict[str, Any]:
    """Kills itself behind the last episode that it may see."""

    def at(number: int, *_: Any) -> None:
        if number > int(last):
            os.kill(os.getpid(), signal.SIGKILL)

    root, begun = Path(folder), _counted()
    examine_afar._examined = waiting
    runner = Runner(name=RAY, workers=WORKERS, address=address)
    ingest(root / "source", root / name, label="cart", runner=runner, on_progress=at)
    return {"units": len(begun), "most_in_flight": max(begun)}


def waiting(reading: Any, unit: Any) -> Iterator[Any]:
    """Units in the middle tell on which node they are, half done, and wait there until one of those nodes is dead."""
    for number, sent in enumerate(examined(reading, unit)):
        folder = reading.path.parent
        if number == 1 and min(unit.parts) >= MIDDLE and not (folder / GO).exists():
            (folder / f"{AT_WORK}-{ray.get_runtime_context().get_node_id()}").touch()
            while not (folder / GO).exists():
                time.sleep(0.05)
        yield sent


def _driver(folder: str, name: str, cluster: Cluster, last: int) -> subprocess.Popen[str]:
    arguments = ["driver", folder, name, str(cluster.address), str(last)]
    command = [sys.executable, "-m", "tests.data_lake.ray_ingest", *arguments]
    return subprocess.Popen(command, cwd=ROOT, env=dict(os.environ), stdout=subprocess.PIPE, text=True)


def _told(ingesting: subprocess.Popen[str]) -> str:
    """What it prints last, once it has ended."""
    printed, _ = ingesting.communicate(timeout=120)
    return (printed.splitlines() or [""])[-1]


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
