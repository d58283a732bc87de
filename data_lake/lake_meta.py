"""The files of LeRobot's v3.0 meta/ for a lake data set: info.json, tasks, episodes and statistics."""

import io
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from data_lake.schema import lake_name
from data_lake.sources.episode import view_name
from data_lake.statistics import Moments
from data_lake.video import VideoIndex

INFO, STATS, TASKS = "info.json", "stats.json", "tasks.parquet"
EPISODES = "episodes/chunk-000/file-000.parquet"
RECORDING = "recording"  # column: the same whatever is said of it, null where it came in before there was one
AS_IT_CAME = "came_as"  # column of the episodes table: the content hash before an edit, null where there was none
DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
FROM_PICTURES = "vlaloop.from_pictures"  # in a camera's `info`: its source has pictures, and no video
VIDEO_PATH = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"


def parquet_bytes(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def read_table(data: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(data))


def tasks_table(tasks: Mapping[str, int]) -> pa.Table:
    """A row per text, which is the index of the data frame that LeRobot makes of it."""
    columns = [{"name": name, "field_name": name, "pandas_type": kind, "numpy_type": numpy, "metadata": None}
               for name, kind, numpy in (("task_index", "int64", "int64"), ("task", "unicode", "object"))]  # fmt: skip
    pandas = {"index_columns": ["task"], "column_indexes": [], "columns": columns, "pandas_version": "2.3.3"}
    table = pa.table({"task_index": pa.array(tasks.values(), pa.int64()), "task": pa.array(tasks.keys(), pa.string())})
    return table.replace_schema_metadata({"pandas": json.dumps(pandas)})


def episode_columns(row: Mapping[str, Any], meaning: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the episodes table from a view's entry: LeRobot's columns, and ours behind them."""
    columns: dict[str, Any] = {
        "episode_index": row["episode_index"],
        "tasks": row["tasks"],
        "length": row["length"],
        "data/chunk_index": 0,
        "data/file_index": 0,
        "dataset_from_index": row["from_index"],
        "dataset_to_index": row["to_index"],
    }
    for view in row["views"].values():
        key = view["video_key"]
        columns[f"videos/{key}/chunk_index"] = view["chunk_index"]
        columns[f"videos/{key}/file_index"] = view["file_index"]
        columns[f"videos/{key}/from_timestamp"] = view["from_s"]
        columns[f"videos/{key}/to_timestamp"] = view["to_s"]
    return columns | {
        "meta/episodes/chunk_index": 0,
        "meta/episodes/file_index": 0,
        "instruction": row["instruction"],
        "source": row["source"],
        "source_episode": row["source_episode"],
        "content_hash": row["content_hash"],
        RECORDING: row.get(RECORDING),
        "extra": json.dumps(row["extra"], sort_keys=True),
        "meaning": json.dumps(meaning, sort_keys=True),
    }


def episodes_table(known: pa.Table | None, rows: Sequence[Mapping[str, Any]], meaning: Mapping[str, Any]) -> pa.Table:
    """`known` with `rows` behind it; an episode without a camera has nulls in its columns. meaning: what their
    source declares of pixels and numbers."""
    columns = [episode_columns(row, meaning) for row in rows]
    names = list(dict.fromkeys(name for row in columns for name in row))
    added = pa.table({name: column(name, [row.get(name) for row in columns]) for name in names})
    return added if known is None else pa.concat_tables([known, added], promote_options="permissive")


def with_meanings(known: pa.Table, meanings: Mapping[int, str]) -> pa.Table:
    """`known` with other meanings, as JSON, for the rows of those numbers."""
    texts = [meanings.get(number, text) for number, text in enumerate(known["meaning"].to_pylist())]
    return known.set_column(known.column_names.index("meaning"), "meaning", column("meaning", texts))


def column(name: str, values: list[Any]) -> pa.Array:
    """A column of the episodes table, in its type."""
    if name == "tasks":
        return pa.array(values, pa.list_(pa.string()))
    if name in ("instruction", "source", "content_hash", "extra", "meaning", AS_IT_CAME, RECORDING):
        return pa.array(values, pa.string())
    return pa.array(values, pa.float64() if name.endswith("timestamp") else pa.int64())


def said_column(values: Sequence[Any]) -> pa.Array:
    """A column of what sources said. As text where they were not consistent, or have what Arrow cannot hold (2^63, half
    a letter)."""
    try:
        return pa.array(values)
    except (ValueError, TypeError, OverflowError):  # Arrow's own errors are kinds of the first two
        texts = [None if value is None else str(value).encode(errors="replace").decode() for value in values]
        return pa.array(texts, pa.string())


def contents_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Content hashes that a row of the episodes table is known by: what it is, and what it came in as."""
    came_as = row.get(AS_IT_CAME)
    return (row["content_hash"], came_as) if came_as else (row["content_hash"],)


def entry_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The view's entry back from a row of the episodes table."""
    views = {
        view_name(key): {
            "video_key": key,
            "chunk_index": row[f"videos/{key}/chunk_index"],
            "file_index": row[f"videos/{key}/file_index"],
            "from_s": row[f"videos/{key}/from_timestamp"],
            "to_s": row[f"videos/{key}/to_timestamp"],
        }
        for key in _cameras(tuple(row))
        if row[f"videos/{key}/chunk_index"] is not None
    }
    return {
        "episode_index": row["episode_index"],
        "source_episode": row["source_episode"],
        "length": row["length"],
        "from_index": row["dataset_from_index"],
        "to_index": row["dataset_to_index"],
        "instruction": row["instruction"],
        "tasks": list(row["tasks"]),
        "views": views,
        "content_hash": row["content_hash"],
        RECORDING: row.get(RECORDING),
        "source": row["source"],
        "extra": json.loads(row["extra"]),
    }


def kept_apart(said: Iterable[str], taken: Collection[str]) -> dict[str, str]:
    """By each name under which sources said something of their episodes, that of its column: the name itself, with
    `extra_` before it while it is `taken` or that of another."""
    titles: dict[str, str] = {}
    used = set(taken)
    for name in dict.fromkeys(said):
        title = name
        while title in used:
            title = f"extra_{title}"
        used.add(title)
        titles[name] = title
    return titles


@lru_cache(maxsize=16)  # asked once per row, and all rows of a table have the same columns
def _cameras(columns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.split("/")[1] for name in columns if name.startswith("videos/") and name.endswith("/chunk_index"))


def stats_json(moments: Mapping[str, Moments]) -> dict[str, Any]:
    """Exact over all rows. Quantiles do not merge; preprocessing computes them from the rows it trains on."""
    return {
        name: {
            "min": found.min_D.tolist(),
            "max": found.max_D.tolist(),
            "mean": found.mean_D.tolist(),
            "std": found.std.tolist(),
            "count": [found.count],
        }
        for name, found in sorted(moments.items())
    }


def stats_with(meta: Mapping[str, bytes], new: Mapping[str, Moments], features: Iterable[str]) -> bytes:
    """stats.json of `meta`, where there is one, with those of new rows by their lake names. features: dotted names."""
    moments = moments_of(json.loads(meta[STATS])) if meta else {}
    dotted = {lake_name(key): key for key in features}
    for name, found in new.items():
        key = dotted[name]
        moments[key] = moments[key].merged(found) if key in moments else found
    return json.dumps(stats_json(moments)).encode()


def moments_of(stats: Mapping[str, Any]) -> dict[str, Moments]:
    """Back from `stats_json`, to be merged with those of new rows."""
    return {
        name: Moments(
            count=found["count"][0],
            mean_D=np.asarray(found["mean"]),
            m2_D=np.asarray(found["std"]) ** 2 * found["count"][0],
            min_D=np.asarray(found["min"]),
            max_D=np.asarray(found["max"]),
        )
        for name, found in stats.items()
    }


def info_json(
    *,
    fps: float,
    robot: str,
    features: Mapping[str, Any],
    num_episodes: int,
    num_frames: int,
    num_tasks: int,
    declared: Mapping[str, Any],
) -> dict[str, Any]:
    return {
        "codebase_version": "v3.0",
        "storage_format": "lance",
        "robot_type": robot,
        "total_episodes": num_episodes,
        "total_frames": num_frames,
        "total_tasks": num_tasks,
        "chunks_size": 1000,
        "data_files_size_in_mb": 100,
        "video_files_size_in_mb": 200,
        "fps": int(fps) if fps == int(fps) else fps,
        "splits": {"train": f"0:{num_episodes}"},
        "data_path": DATA_PATH,
        "video_path": VIDEO_PATH,
        "features": dict(features),
        "vlaloop": dict(declared),
    }


def video_feature(video: VideoIndex, fps: float, *, from_pictures: bool) -> dict[str, Any]:
    """A camera among the features. from_pictures: its source has no video, this one was made of them."""
    info = {"video.fps": fps, "video.height": video.height, "video.width": video.width, "video.codec": video.codec}
    return {
        "dtype": "video",
        "shape": [video.height, video.width, 3],
        "names": ["height", "width", "channels"],
        "info": info | ({FROM_PICTURES: True} if from_pictures else {}),
    }
