"""Records a small data set with LeRobot's own writer: a camera of dtype `image`, one of dtype `video`, known values.

A script for either peers' environment (LeRobot 0.6.1 writes v3.0, 0.3.3 writes v2.1): `record.py FOLDER`.
"""

import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset

FPS = 10
LENGTHS = (7, 5)
TASKS = ("push the cube", "lift the cube")
PICTURES = {"dtype": "image", "shape": (48, 64, 3), "names": ["height", "width", "channels"]}
VIDEO = {"dtype": "video", "shape": (64, 64, 3), "names": ["height", "width", "channels"]}
FEATURES = {
    "observation.state": {"dtype": "float32", "shape": (3,), "names": ["x", "y", "z"]},
    "action": {"dtype": "float32", "shape": (2,), "names": ["dx", "dy"]},
    "observation.images.stills": PICTURES,
    "observation.images.front": VIDEO,
}


def frame_of(episode: int, frame: int) -> dict[str, np.ndarray]:
    """Seeded by (episode, frame): anybody can tell what must be there."""
    rng = np.random.default_rng((episode, frame))
    return {
        "observation.state": rng.random(3, np.float32),
        "action": rng.random(2, np.float32),
        "observation.images.stills": rng.integers(0, 256, PICTURES["shape"], np.uint8),
        "observation.images.front": np.full(VIDEO["shape"], (episode * 90, frame * 30, 128), np.uint8),
    }


def main(root: Path) -> None:
    dataset = LeRobotDataset.create(repo_id=f"local/{root.name}", fps=FPS, features=FEATURES, root=root)
    is_v21 = version("lerobot") == "0.3.3"
    for episode, (length, task) in enumerate(zip(LENGTHS, TASKS, strict=True)):
        for frame in range(length):
            if is_v21:
                dataset.add_frame(frame_of(episode, frame), task=task)
            else:
                dataset.add_frame({**frame_of(episode, frame), "task": task})
        dataset.save_episode()
    if not is_v21:
        dataset.finalize()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
