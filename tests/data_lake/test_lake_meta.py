"""LeRobot's meta files for a lake data set: written, appended to, read back."""

import io

import numpy as np
import pandas as pd
import pytest

from data_lake import lake_meta
from data_lake.statistics import Moments


def entry(number: int, *cameras: str) -> dict[str, object]:
    views = {
        camera.removeprefix("observation.images."): {
            "video_key": camera,
            "chunk_index": 0,
            "file_index": number,
            "from_s": 0.0,
            "to_s": 0.5,
        }
        for camera in cameras
    }
    return {
        "episode_index": number,
        "source_episode": number + 20,
        "length": 5,
        "from_index": number * 5,
        "to_index": number * 5 + 5,
        "instruction": "push",
        "tasks": ["push"],
        "views": views,
        "content_hash": f"{number:064d}",
        lake_meta.RECORDING: f"{number + 9:064d}",
        "source": "v2",
        "extra": {"seed": 3},
    }


def test_entries_come_back_after_an_append_with_another_camera() -> None:
    front, wrist = "observation.images.front", "observation.images.wrist"
    entries = [entry(0, front), entry(1, front, wrist), entry(2, wrist), entry(3)]
    first = lake_meta.episodes_table(None, entries[:1], {"fps": 10})
    both = lake_meta.episodes_table(first, entries[1:], {"fps": 10})
    stored = lake_meta.read_table(lake_meta.parquet_bytes(both))
    assert [lake_meta.entry_of(row) for row in stored.to_pylist()] == entries
    assert stored["meaning"].to_pylist() == ['{"fps": 10}'] * 4
    assert stored["dataset_to_index"].to_pylist() == [5, 10, 15, 20]


def test_tasks_are_the_index_of_a_data_frame() -> None:
    content = lake_meta.parquet_bytes(lake_meta.tasks_table({"push": 0, "lift": 1}))
    frame = pd.read_parquet(io.BytesIO(content))
    assert frame.index.name == "task" and frame.loc["lift", "task_index"] == 1


def test_moments_come_back() -> None:
    rows = np.asarray([[1.0, 5.0], [3.0, 5.0]])
    stats = lake_meta.stats_json({"action": Moments.of(rows)})
    assert stats["action"] == {
        "min": [1.0, 5.0],
        "max": [3.0, 5.0],
        "mean": [2.0, 5.0],
        "std": [1.0, 0.0],
        "count": [2],
    }
    back = lake_meta.moments_of(stats)["action"]
    merged = back.merged(Moments.of(rows + 4))
    assert (merged.count, merged.mean_D.tolist()) == (4, [4.0, 7.0])
    assert merged.std == pytest.approx(np.concatenate([rows, rows + 4]).std(axis=0))
