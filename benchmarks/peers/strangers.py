"""Opens what the lake gave out with LeRobot's and LanceDB's own readers, item by item against the original source.

A script for the peers' environment (LeRobot 0.6.1, lerobot-lancedb 0.3.1), which this project does not import: run it
with their python and HF_HUB_OFFLINE=1. It prints one JSON line.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from items import compare
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from lerobot.scripts.convert_dataset_v21_to_v30 import convert_dataset
from lerobot_lancedb import LanceDBDataset

CHUNK = 16


def windows(fps: float) -> dict[str, list[float]]:
    return {"action": [step / fps for step in range(CHUNK)]}


def open_folder(root: Path, fps: float | None = None) -> Any:
    return LeRobotDataset(f"local/{root.name}", root=root, delta_timestamps=windows(fps) if fps else None)


def open_lance(root: Path, fps: float | None = None) -> Any:
    return LanceDBDataset(root=root, delta_timestamps=windows(fps) if fps else None)


def from_v21(root: Path, scratch: Path) -> Any:
    """LeRobot 0.6.1 reads no v2.1: its own converter first, on a copy, since it works in place."""
    copy = shutil.copytree(root, scratch / root.name)
    convert_dataset(repo_id=f"local/{root.name}", root=copy, push_to_hub=False)
    return open_folder(copy)


def digest(items: Any) -> str:
    """SHA-256 over every key and value of every item."""
    whole = hashlib.sha256()
    for number in range(len(items)):
        for key, value in sorted(items[number].items()):
            whole.update(f"{key} {value.dtype} {tuple(value.shape)}".encode() if torch.is_tensor(value) else b"text")
            whole.update(value.contiguous().numpy().tobytes() if torch.is_tensor(value) else str(value).encode())
    return whole.hexdigest()


def doctor(root: Path) -> dict[str, Any]:
    """lerobot-lance-doctor: its exit status is the number of failed checks."""
    command = [str(Path(sys.executable).with_name("lerobot-lance-doctor")), "--root", str(root)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    return {"failed": ended.returncode, "said": ended.stdout.strip().splitlines()[-1:]}


def watch(root: Path, until: Path) -> list[str]:
    """The digest of all items, opened anew and read again until `until` appears, and once more after that."""
    seen, done = [], False
    while not done:
        done = until.exists()
        seen.append(digest(open_lance(root)))
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description="what strangers read of the lake")
    for name in ("source", "lance", "v30", "v21", "until"):
        parser.add_argument(f"--{name}", type=Path, required=name == "source")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = compared(given, Path(scratch))
    if given.v30 is not None:
        found["doctor"] = doctor(given.v30)
    if given.until is not None:
        found["passes"] = watch(given.lance, given.until)
    packages = ("lerobot", "lerobot-lancedb", "torch", "torchcodec", "lancedb")
    found["versions"] = {name: version(name) for name in packages}
    print(json.dumps(found))


def compared(given: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Each folder that was named against the source, the first two also with chunks of actions."""
    source = open_folder(given.source)
    chunks = open_folder(given.source, source.meta.fps)
    found: dict[str, Any] = {}
    for name, root, opener in (("lance", given.lance, open_lance), ("v30", given.v30, open_folder)):
        if root is not None:
            found[name] = compare(source, opener(root))
            found[f"{name}_chunks"] = compare(chunks, opener(root, source.meta.fps))
    if given.v21 is not None:
        found["v21"] = compare(source, from_v21(given.v21, scratch))
    return found


if __name__ == "__main__":
    main()
