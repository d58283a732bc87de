"""What test_cluster runs in processes of their own: each prints one line of JSON."""

import hashlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import lance
import numpy as np
import ray
from ray.cluster_utils import Cluster

from data_lake.cluster import joined, spread
from data_lake.preprocess import preprocess_view
from data_lake.runners import RAY, Runner
from data_lake.view import read_view
from errors import UserError
from tests.data_lake.lake_fixture import RECORDED, request_for, write_dataset, write_view
from tests.data_lake.model_functions import prepare_view

STORE = {"object_store_memory": 80 << 20}
AT_WORK, GO = "at_work", "go"


def square(number: int) -> Iterator[int]:
    yield number * number


def inverse(number: int) -> Iterator[float]:
    time.sleep(0.05)
    yield 1 / number


def order() -> dict:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, **STORE})
    given: list[int] = []
    begun: list[int] = []

    def units() -> Iterator[int]:
        for number in range(12):
            begun.append(number + 1 - len(given))
            yield number

    raised = []
    with joined(cluster.address):
        given.extend(spread(units(), square, in_flight=3))
        try:
            list(spread([1, 2, 0, 4], inverse, in_flight=2))
        except ZeroDivisionError:
            raised.append("ZeroDivisionError")
    cluster.shutdown()
    try:
        list(Runner(name=RAY).run("never:called", "", ["unit"]))  # Ray is loaded here already
    except UserError as error:
        raised.append(error.code)
    return {"results": given, "most_begun": max(begun), "raised": raised, "joined": ray.is_initialized()}


def slow_view(image: np.ndarray, inputs: dict) -> np.ndarray:
    """Tells on which node the first image is prepared, and waits there until that node is dead."""
    folder = Path(inputs["folder"])
    if not (folder / GO).exists():
        (folder / f"{AT_WORK}-{ray.get_runtime_context().get_node_id()}").touch()
        while not (folder / GO).exists():
            time.sleep(0.05)
    return prepare_view(image, inputs)


def node_death(folder: str) -> dict:
    root = Path(folder)
    vector = write_dataset(root / "dataset", RECORDED)
    write_view(root / "view", RECORDED, vector)
    view = read_view(root / "view")
    slow = replace(request_for().functions, prepare_view="tests.data_lake.ray_scripts:slow_view")
    request = request_for(functions=slow, inputs={"folder": folder})
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **STORE})
    nodes = [cluster.add_node(num_cpus=1, memory=2 << 30, **STORE) for _ in range(2)]
    died: list[str] = []
    killer = threading.Thread(target=_kill_one_at_work, args=(cluster, nodes, root, died), daemon=True)
    killer.start()
    (root / "ray").mkdir()
    preprocess_view(
        view, root / "dataset", request, root / "ray", runner=Runner(name=RAY, workers=4, address=cluster.address)
    )
    killer.join()
    cluster.shutdown()
    (root / "native").mkdir()
    preprocess_view(view, root / "dataset", request, root / "native")
    return {"died_at_work": bool(died), "ray": digest(root / "ray"), "native": digest(root / "native")}


def _kill_one_at_work(cluster: Cluster, nodes: list, root: Path, died: list[str]) -> None:
    while not (working := list(root.glob(f"{AT_WORK}-*"))):
        time.sleep(0.05)
    name = working[0].name.removeprefix(f"{AT_WORK}-")
    (victim,) = (node for node in nodes if node.node_id == name)
    cluster.remove_node(victim, allow_graceful=False)
    died.append(name)
    (root / GO).touch()


def digest(out: Path) -> str:
    """Of the rows of both tables in order, and of the card."""
    found = hashlib.sha256((out / "card.json").read_bytes())
    for table in ("samples.lance", "steps.lance"):
        for row in lance.dataset(str(out / table)).to_table().to_pylist():
            found.update(repr(row).encode())
    return found.hexdigest()


if __name__ == "__main__":
    scripts = {"order": order, "node_death": node_death}
    print(json.dumps(scripts[sys.argv[1]](*sys.argv[2:])), flush=True)
