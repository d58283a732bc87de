"""What test_cluster runs of ingest in a process of its own: prints one line of JSON.

`python -m tests.data_lake.ray_ingest elastic FOLDER`. Units are of two parts, shelves of one video.
"""

import json
import os
import signal
import subprocess
import sys
import threading
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
WORKERS = 4
examine_afar.UNIT_PARTS, shelf_afar.SHELF_BYTES = 2, 1


def elastic(folder: str) -> dict[str, Any]:
    """A cluster without CPUs gets two nodes once the ingest waits, loses one in the middle, and gets another."""
    root = Path(folder)
    source = write_v2(root / "source", LENGTHS)
    change_rows(source / f"data/chunk-000/episode_{BAD:06d}.parquet", action=[[0.0, float("nan")]] * LENGTHS[BAD])
    ingest(source, root / "native", label="cart")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **STORE})
    nodes: list[Any] = []
    grows = threading.Thread(target=lambda: (time.sleep(2), nodes.extend(_node(cluster) for _ in range(2))))
    grows.start()

    def at(number: int, *_: Any) -> None:
        if number == 8:
            grows.join()
            cluster.remove_node(nodes[0], allow_graceful=False)
            nodes.append(_node(cluster))

    begun = _counted()
    ingest(source, root / "ray", label="cart", runner=_runner(cluster.address), on_progress=at)
    command = [sys.executable, "-m", "tests.data_lake.ray_ingest", "driver", folder, str(cluster.address)]
    killed = subprocess.run(command, cwd=ROOT, timeout=240, check=False).returncode
    ingest(source, root / "again", label="cart", runner=_runner(cluster.address))
    cluster.shutdown()
    native = _all(root / "native")
    return {
        "units": len(begun),
        "most_in_flight": max(begun),
        "same": _all(root / "ray") == native,
        "killed": killed == -signal.SIGKILL,
        "same_after_kill": _all(root / "again") == native,
        "counts": [len(native[1]["episodes"]), len(native[1]["quarantine"])],
    }


def driver(folder: str, address: str) -> dict[str, Any]:
    """Kills itself in the middle."""

    def at(number: int, *_: Any) -> None:
        if number == 20:
            os.kill(os.getpid(), signal.SIGKILL)

    root = Path(folder)
    ingest(root / "source", root / "again", label="cart", runner=_runner(address), on_progress=at)
    return {}


def _node(cluster: Cluster) -> Any:
    return cluster.add_node(num_cpus=1, memory=2 << 30, **STORE)


def _runner(address: Any) -> Runner:
    return Runner(name=RAY, workers=WORKERS, address=str(address))


def _counted() -> list[int]:
    """Of each unit of examination when it begins, how many have begun and not been given out whole, itself included."""
    begun: list[int] = []
    given: list[int] = []
    units_of, received = examine_afar.units_of, examine_afar._received

    def units(*arguments: Any) -> Any:
        for unit in units_of(*arguments):
            begun.append(len(begun) + 1 - max(0, len(set(given)) - 1))
            yield unit

    def noted(sent: Any, before: int) -> Any:
        given.append(sent.first)
        return received(sent, before)

    examine_afar.units_of, examine_afar._received = units, noted
    return begun


def _all(root: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    return content(root), said(root)


if __name__ == "__main__":
    scripts: dict[str, Callable[..., dict[str, Any]]] = {"elastic": elastic, "driver": driver}
    print(json.dumps(scripts[sys.argv[1]](*sys.argv[2:])), flush=True)
