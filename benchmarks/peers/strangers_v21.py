"""Opens v2.1 folders that the lake gave out with LeRobot 0.3.3, item by item against the original source.

A script for the environment of deployments/envs/peers_v21.txt; HF_HUB_OFFLINE=1. It prints one JSON line.
"""

import argparse
import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from items import Items, compare
from lerobot.datasets.lerobot_dataset import LeRobotDataset


def open_folder(root: Path, episodes: list[int] | None = None) -> LeRobotDataset:
    return LeRobotDataset(f"local/{root.name}", root=root, episodes=episodes)


def save(items: Items, path: Path, every: int) -> None:
    """Items as arrays, by their keys: a row per item, images (3, H, W) as uint8; words are left out."""
    chosen = [items[number] for number in range(0, len(items), every)]
    keys = [key for key, value in chosen[0].items() if torch.is_tensor(value)]
    arrays = {key: torch.stack([item[key] for item in chosen]) for key in keys}
    np.savez(path, **{key: (x if x.ndim < 4 else (x * 255).round().byte()).numpy() for key, x in arrays.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description="what LeRobot 0.3.3 reads of the lake")
    parser.add_argument("--v21", type=Path, required=True)
    parser.add_argument("--source", type=Path, help="of v2.1 too, to compare with")
    parser.add_argument("--episodes", type=int, nargs="*", help="of the source, where they are not 0, 1, 2, …")
    parser.add_argument("--every", type=int, default=1, help="look at every n-th item")
    parser.add_argument("--arrays", type=Path, help="where to put the items of v21 as .npz")
    given = parser.parse_args()
    opened = open_folder(given.v21)
    found = {"items": len(opened), "episodes": opened.num_episodes}
    if given.source is not None:
        found["compared"] = compare(open_folder(given.source, given.episodes), opened, given.every)
    if given.arrays is not None:
        save(opened, given.arrays, given.every)
    found["versions"] = {name: version(name) for name in ("lerobot", "torch", "torchcodec", "datasets")}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
