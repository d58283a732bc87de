"""Writes finished episodes as a LeRobot v3.0 data set folder (layout: the LeRobot library, codebase version v3.0)."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.recorder import LEVELS, Episode

CHUNK = 1000  # files per folder
QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO_PATH = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
EPISODES_PATH = "meta/episodes/chunk-000/file-000.parquet"

Stats = dict[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderLayout:
    """What the episodes of a folder share. views: name to (height, width). names: of state and action dims.

    declared: what no reader could tell from the files; goes to info.json under `vlaloop`.
    """

    fps: float
    robot_type: str
    views: dict[str, tuple[int, int]]
    state_names: tuple[str, ...]
    action_names: tuple[str, ...]
    declared: dict[str, Any]


def write_folder(root: Path, episodes: Sequence[tuple[str, Episode]], layout: FolderLayout) -> int:
    """Write (instruction, episode) pairs as data set `root`; videos are linked, not copied. Returns the frames.

    A view that an episode lacks has nulls in its video columns.
    """
    tasks = list(dict.fromkeys(instruction for instruction, _ in episodes))
    tables, lines, start = [], [], 0
    placed: dict[str, int] = {}
    for index, (instruction, episode) in enumerate(episodes):
        columns = _columns(episode, index, start, tasks.index(instruction), layout.fps)
        stats = _episode_stats(columns, episode, layout)
        tables.append(_table(columns))
        line = {
            "episode_index": index,
            "tasks": [instruction],
            "length": episode.steps,
            "data/chunk_index": 0,
            "data/file_index": 0,
            "dataset_from_index": start,
            "dataset_to_index": start + episode.steps,
            **_place_videos(root, episode, layout, placed),
            **{f"stats/{key}/{name}": value for key, each in stats.items() for name, value in each.items()},
            "meta/episodes/chunk_index": 0,
            "meta/episodes/file_index": 0,
            "seed": episode.seed,
            "success": episode.success,
        }
        lines.append(line)
        start += episode.steps
    data = pa.concat_tables(tables)
    _write_table(root / DATA_PATH.format(chunk_index=0, file_index=0), data)
    _write_table(root / "meta/tasks.parquet", pa.table({"task_index": range(len(tasks)), "task": tasks}))
    _write_table(root / EPISODES_PATH, pa.Table.from_pylist(lines, schema=_episodes_schema(lines)))
    _write_json(root / "meta/stats.json", _total_stats(data, [episode for _, episode in episodes]))
    _write_json(root / "meta/info.json", _described(layout, len(episodes), start, len(tasks)))
    return start


def _columns(episode: Episode, index: int, start: int, task_index: int, fps: float) -> dict[str, np.ndarray]:
    frames = np.arange(episode.steps, dtype=np.int64)
    return {
        "observation.state": episode.rows["state"],
        "action": episode.rows["action"],
        "action.executed": episode.rows["executed"],
        "next.success": episode.rows["success"],
        "timestamp": (frames / fps).astype(np.float32),
        "frame_index": frames,
        "episode_index": np.full_like(frames, index),
        "index": start + frames,
        "task_index": np.full_like(frames, task_index),
    }


def _table(columns: dict[str, np.ndarray]) -> pa.Table:
    arrays = {
        name: pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
        if values.ndim == 2
        else pa.array(values)
        for name, values in columns.items()
    }
    return pa.table(arrays)


def _place_videos(root: Path, episode: Episode, layout: FolderLayout, placed: dict[str, int]) -> dict[str, Any]:
    """Link the episode's videos into place, one file each; nulls for a view that it lacks."""
    columns: dict[str, Any] = {}
    for view in layout.views:
        key = f"observation.images.{view}"
        video = episode.videos.get(view)
        chunk = file = None
        if video is not None:
            chunk, file = divmod(placed.get(key, 0), CHUNK)
            placed[key] = placed.get(key, 0) + 1
            target = root / VIDEO_PATH.format(video_key=key, chunk_index=chunk, file_index=file)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(video, target)
        columns[f"videos/{key}/chunk_index"] = chunk
        columns[f"videos/{key}/file_index"] = file
        columns[f"videos/{key}/from_timestamp"] = None if video is None else 0.0
        columns[f"videos/{key}/to_timestamp"] = None if video is None else episode.steps / layout.fps
    return columns


def _numbers(values: np.ndarray) -> dict[str, Any]:
    """Statistics per dimension of (T,) or (T, D)."""
    wide = values.reshape(len(values), -1).astype(np.float64)
    quantiles = np.quantile(wide, list(QUANTILES.values()), axis=0)
    return {
        "min": wide.min(0).tolist(),
        "max": wide.max(0).tolist(),
        "mean": wide.mean(0).tolist(),
        "std": wide.std(0).tolist(),
        "count": [len(wide)],
        **{name: row.tolist() for name, row in zip(QUANTILES, quantiles, strict=True)},
    }


def _pictures(levels: np.ndarray, height: int, width: int) -> dict[str, Any]:
    """Statistics per channel, in [0, 1] and shaped (3, 1, 1), exactly from a histogram (3, 256)."""
    scale = np.arange(LEVELS) / (LEVELS - 1)
    total = levels.sum(1, keepdims=True)
    share, cumulated = levels / total, np.cumsum(levels, axis=1) / total
    mean = share @ scale
    seen = levels > 0
    figures = {
        "min": scale[seen.argmax(1)],
        "max": scale[LEVELS - 1 - seen[:, ::-1].argmax(1)],
        "mean": mean,
        "std": np.sqrt(np.maximum(share @ scale**2 - mean**2, 0.0)),
        **{name: scale[(cumulated >= at).argmax(1)] for name, at in QUANTILES.items()},
    }
    shaped = {name: [[[float(value)]] for value in row] for name, row in figures.items()}
    return {**shaped, "count": [int(total[0, 0]) // (height * width)]}


def _episode_stats(columns: dict[str, np.ndarray], episode: Episode, layout: FolderLayout) -> Stats:
    stats = {name: _numbers(values) for name, values in columns.items() if values.dtype != bool}
    empty = dict.fromkeys(("min", "max", "mean", "std", "count", *QUANTILES))
    for view, size in layout.views.items():
        levels = episode.levels.get(view)
        stats[f"observation.images.{view}"] = empty if levels is None else _pictures(levels, *size)
    return stats


def _total_stats(data: pa.Table, episodes: Sequence[Episode]) -> Stats:
    stats: Stats = {}
    for name in data.column_names:
        column = data[name].combine_chunks()
        if pa.types.is_boolean(column.type):
            continue
        is_vector = pa.types.is_fixed_size_list(column.type)
        flat = (column.flatten() if is_vector else column).to_numpy(zero_copy_only=False)
        stats[name] = _numbers(flat.reshape(len(column), -1))
    for view in sorted({view for episode in episodes for view in episode.levels}):
        shown = [episode.levels[view] for episode in episodes if view in episode.levels]
        stats[f"observation.images.{view}"] = _pictures(np.sum(shown, axis=0), 1, 1)
    return stats


def _episodes_schema(lines: list[dict[str, Any]]) -> pa.Schema:
    """Types that hold even where the first episode has nulls."""
    fields = []
    for name in lines[0]:
        if name.startswith("stats/observation.images."):
            deep = pa.list_(pa.list_(pa.list_(pa.float64())))
            fields.append(pa.field(name, pa.list_(pa.int64()) if name.endswith("/count") else deep))
        elif name.startswith("videos/"):
            fields.append(pa.field(name, pa.float64() if name.endswith("timestamp") else pa.int64()))
        else:
            fields.append(pa.field(name, pa.array([line[name] for line in lines]).type))
    return pa.schema(fields)


def _described(layout: FolderLayout, num_episodes: int, num_frames: int, num_tasks: int) -> dict[str, Any]:
    rate = int(layout.fps) if layout.fps == int(layout.fps) else layout.fps
    vectors = {
        "observation.state": layout.state_names,
        "action": layout.action_names,
        "action.executed": layout.action_names,
    }
    scalars = {"next.success": "bool", "timestamp": "float32"}
    scalars |= dict.fromkeys(("frame_index", "episode_index", "index", "task_index"), "int64")
    features: dict[str, Any] = {
        name: {"dtype": "float32", "shape": [len(names)], "names": list(names)} for name, names in vectors.items()
    }
    for view, (height, width) in layout.views.items():
        features[f"observation.images.{view}"] = {
            "dtype": "video",
            "shape": [height, width, 3],
            "names": ["height", "width", "channels"],
            "info": {
                "video.height": height,
                "video.width": width,
                "video.codec": "h264",
                "video.pix_fmt": "gbrp",
                "video.fps": rate,
                "video.channels": 3,
                "video.is_depth_map": False,
                "has_audio": False,
            },
        }
    features |= {name: {"dtype": dtype, "shape": [1], "names": None} for name, dtype in scalars.items()}
    return {
        "codebase_version": "v3.0",
        "robot_type": layout.robot_type,
        "total_episodes": num_episodes,
        "total_frames": num_frames,
        "total_tasks": num_tasks,
        "chunks_size": CHUNK,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": rate,
        "splits": {"train": f"0:{num_episodes}"},
        "data_path": DATA_PATH,
        "video_path": VIDEO_PATH,
        "features": features,
        "vlaloop": layout.declared,
    }


def _write_table(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1))
