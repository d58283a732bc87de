"""Recordings read without the project's own reader: parquet rows by pyarrow, pixels by PyAV."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import numpy as np
import pyarrow.parquet as pq

VIEWS = ("top", "corner")


@dataclass(frozen=True)
class Recorded:
    """One episode: frames (T, height, width, 3) uint8 of the views that it has, state and action (T, 4)."""

    frames: Mapping[str, np.ndarray]
    state: np.ndarray
    action: np.ndarray
    instruction: str


def read(folder: Path) -> list[Recorded]:
    """The episodes of a LeRobot v3.0 folder in which every episode has video files of its own."""
    rows = pq.read_table(folder / "data/chunk-000/file-000.parquet")
    listed = pq.read_table(folder / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    return [_episode(folder, each, rows.slice(each["dataset_from_index"], each["length"])) for each in listed]


def _episode(folder: Path, listed: Mapping[str, Any], rows: Any) -> Recorded:
    frames = {}
    for view in VIEWS:
        key = f"observation.images.{view}"
        if (file := listed[f"videos/{key}/file_index"]) is not None:
            with av.open(folder / f"videos/{key}/chunk-000/file-{file:03d}.mp4") as video:
                frames[view] = np.stack([frame.to_ndarray(format="rgb24") for frame in video.decode(video=0)])
    state, action = (np.array(rows[name].to_pylist(), np.float32) for name in ("observation.state", "action"))
    return Recorded(frames=frames, state=state, action=action, instruction=listed["tasks"][0])
