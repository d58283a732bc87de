"""Small LeRobot folders written for tests: v2.1 and v3.0 of the same rows and the same H.264 packets."""

import io
import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

FPS = 10
SIZE = 32
CAMERA = "observation.images.front"
TASKS = ("push the cube", "lift the cube")


def colour(episode: int, frame: int) -> tuple[int, int, int]:
    """Every frame of every episode has a colour of its own."""
    return (episode * 40) % 256, (frame * 12) % 256, 128


def write_video(path: Path, colours: Sequence[tuple[int, int, int]], fps: int = FPS, size: int = SIZE) -> None:
    """One flat frame of 32 x 32 per colour, a keyframe every five."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=fps, options={"g": "5", "preset": "ultrafast"})
        stream.width = stream.height = size
        stream.pix_fmt = "yuv420p"
        for value in colours:
            frame = av.VideoFrame.from_ndarray(np.full((size, size, 3), value, np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def join_videos(path: Path, parts: Sequence[Path], lengths: Sequence[int], fps: int = FPS) -> None:
    """The packets of `parts` one after another in one file, not re-encoded."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream, begin = None, Fraction(0)
        for part, length in zip(parts, lengths, strict=True):
            with av.open(str(part)) as source:
                video = source.streams.video[0]
                stream = stream or container.add_stream_from_template(video)
                for packet in source.demux(video):
                    if packet.pts is None or packet.dts is None:
                        continue
                    shift = int(begin / packet.time_base)
                    packet.pts, packet.dts, packet.stream = packet.pts + shift, packet.dts + shift, stream
                    container.mux(packet)
            begin += Fraction(length, fps)


def rows_of(episode: int, length: int, first: int, fps: int = FPS) -> pa.Table:
    frame = np.arange(length)
    state = np.stack([frame * 0.5, np.full(length, episode), np.ones(length)], axis=1).astype(np.float32)
    return pa.table(
        {
            "observation.state": pa.FixedSizeListArray.from_arrays(pa.array(state.reshape(-1)), 3),
            "action": pa.FixedSizeListArray.from_arrays(pa.array((state[:, :2] + 1).reshape(-1)), 2),
            "timestamp": pa.array((frame / fps).astype(np.float32)),
            "frame_index": pa.array(frame),
            "episode_index": pa.array(np.full(length, episode)),
            "index": pa.array(first + frame),
            "task_index": pa.array(np.full(length, episode % 2)),
        }
    )


def info_of(version: str, lengths: Sequence[int], cameras: Sequence[str], fps: int = FPS) -> dict[str, Any]:
    number = {"dtype": "int64", "shape": [1], "names": None}
    features = {
        "observation.state": {"dtype": "float32", "shape": [3], "names": ["x", "y", "z"]},
        "action": {"dtype": "float32", "shape": [2], "names": ["dx", "dy"]},
        "timestamp": {"dtype": "float32", "shape": [1], "names": None},
        **dict.fromkeys(("frame_index", "episode_index", "index", "task_index"), number),
        **{key: {"dtype": "video", "shape": [SIZE, SIZE, 3], "names": ["height", "width", "channels"]}
           for key in cameras},
    }  # fmt: skip
    return {
        "codebase_version": version,
        "robot_type": "cart",
        "total_episodes": len(lengths),
        "total_frames": sum(lengths),
        "total_tasks": 2,
        "chunks_size": 1000,
        "fps": fps,
        "splits": {"train": f"0:{len(lengths)}"},
        "features": features,
    }


QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}


def stats_of(table: pa.Table, quantiles: bool = False) -> dict[str, dict[str, list[float]]]:
    """What LeRobot writes of rows: v2.1 without quantiles."""
    stats = {}
    for name in table.column_names:
        rows = np.array(table[name].to_pylist(), np.float64).reshape(table.num_rows, -1)
        found = {"min": rows.min(0), "max": rows.max(0), "mean": rows.mean(0), "std": rows.std(0)}
        if quantiles:
            found |= {key: np.quantile(rows, share, axis=0) for key, share in QUANTILES.items()}
        stats[name] = {key: value.tolist() for key, value in found.items()} | {"count": [table.num_rows]}
    return stats


def write_v2(
    root: Path,
    lengths: Sequence[int] = (8, 12, 10),
    cameras: Sequence[str] = (CAMERA,),
    rows: Callable[[int, int, int], pa.Table] = rows_of,
) -> Path:
    """LeRobot v2.1: one parquet and one mp4 per episode and camera. rows: of (episode, length, first index)."""
    (root / "meta").mkdir(parents=True)
    (root / "data/chunk-000").mkdir(parents=True)
    stats: list[dict[str, Any]] = []
    first = 0
    for episode, length in enumerate(lengths):
        table = rows(episode, length, first)
        pq.write_table(table, root / f"data/chunk-000/episode_{episode:06d}.parquet")
        stats.append({"episode_index": episode, "stats": stats_of(table)})
        first += length
        for number, key in enumerate(cameras):
            frames = [colour(episode + 3 * number, frame) for frame in range(length)]
            write_video(root / f"videos/chunk-000/{key}/episode_{episode:06d}.mp4", frames)
    info = info_of("v2.1", lengths, cameras) | {
        "total_videos": len(lengths) * len(cameras),
        "total_chunks": 1,
        "data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        "video_path": "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
    }
    (root / "meta/info.json").write_text(json.dumps(info))
    write_lines(root / "meta/tasks.jsonl", [{"task_index": n, "task": task} for n, task in enumerate(TASKS)])
    listed = [{"episode_index": n, "tasks": [TASKS[n % 2]], "length": length} for n, length in enumerate(lengths)]
    write_lines(root / "meta/episodes.jsonl", listed)
    write_lines(root / "meta/episodes_stats.jsonl", stats)
    return root


def span_columns(key: str, lengths: Sequence[int], there: Sequence[int]) -> dict[str, list[Any]]:
    """The video columns of one camera, whose file holds the episodes `there`; null or NaN for the others."""
    spans: list[tuple[float, float] | None] = [None] * len(lengths)
    begin = 0
    for episode in there:
        spans[episode] = (begin / FPS, (begin + lengths[episode]) / FPS)
        begin += lengths[episode]
    nowhere = (float("nan"), float("nan"))
    return {
        f"videos/{key}/chunk_index": [None if span is None else 0 for span in spans],
        f"videos/{key}/file_index": [None if span is None else 0 for span in spans],
        f"videos/{key}/from_timestamp": [(span or nowhere)[0] for span in spans],
        f"videos/{key}/to_timestamp": [(span or nowhere)[1] for span in spans],
    }


def write_v3(
    root: Path,
    source: Path,
    lengths: Sequence[int] = (8, 12, 10),
    cameras: Sequence[str] = (CAMERA,),
    without: Sequence[tuple[int, str]] = (),
    declared: dict[str, Any] | None = None,
) -> Path:
    """LeRobot v3.0 of the same episodes as the v2.1 folder `source`: one data file, one video file per camera.

    without: (episode, camera) pairs that have no such view.
    """
    (root / "meta/episodes/chunk-000").mkdir(parents=True)
    (root / "data/chunk-000").mkdir(parents=True)
    starts = np.cumsum([0, *lengths])
    numbers = range(len(lengths))
    tables = [pq.read_table(source / f"data/chunk-000/episode_{number:06d}.parquet") for number in numbers]
    pq.write_table(pa.concat_tables(tables), root / "data/chunk-000/file-000.parquet")
    columns: dict[str, list[Any]] = {
        "episode_index": list(range(len(lengths))),
        "tasks": [[TASKS[episode % 2]] for episode in range(len(lengths))],
        "length": list(lengths),
        "data/chunk_index": [0] * len(lengths),
        "data/file_index": [0] * len(lengths),
        "dataset_from_index": [int(start) for start in starts[:-1]],
        "dataset_to_index": [int(start) for start in starts[1:]],
        "seed": [100 + episode for episode in range(len(lengths))],
    }
    for key in cameras:
        there = [episode for episode in range(len(lengths)) if (episode, key) not in without]
        parts = [source / f"videos/chunk-000/{key}/episode_{episode:06d}.mp4" for episode in there]
        join_videos(root / f"videos/{key}/chunk-000/file-000.mp4", parts, [lengths[episode] for episode in there])
        columns |= span_columns(key, lengths, there)
    stats = [stats_of(table, quantiles=True) for table in tables]
    for name, found in stats[0].items():
        columns |= {f"stats/{name}/{key}": [each[name][key] for each in stats] for key in found}
    pq.write_table(pa.table(columns), root / "meta/episodes/chunk-000/file-000.parquet")
    pq.write_table(pa.table({"task_index": [0, 1], "task": list(TASKS)}), root / "meta/tasks.parquet")
    info = info_of("v3.0", lengths, cameras) | {
        "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
    }
    if declared:
        info["vlaloop"] = declared
    (root / "meta/info.json").write_text(json.dumps(info))
    (root / "meta/stats.json").write_text(json.dumps(stats_of(pa.concat_tables(tables), quantiles=True)))
    return root


def add_pictures(root: Path, image: Callable[[int, int], np.ndarray], key: str = CAMERA, form: str = "PNG") -> Path:
    """A camera of dtype `image`: each row gets its picture of (episode, frame), as LeRobot stores them (v2.x, v3.0)."""
    for path in sorted((root / "data").rglob("*.parquet")):
        table = pq.read_table(path)
        numbers = zip(table["episode_index"].to_pylist(), table["frame_index"].to_pylist(), strict=True)
        stored = [{"bytes": encoded(image(*each), form), "path": f"frame_{each[1]:06d}.png"} for each in numbers]
        column = pa.array(stored, pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
        declared = {"info": {"features": {key: {"_type": "Image"}}}}
        table = table.append_column(key, column).replace_schema_metadata({"huggingface": json.dumps(declared)})
        pq.write_table(table, path)
    info = json.loads((root / "meta/info.json").read_text())
    shape = list(image(0, 0).shape)
    info["features"][key] = {"dtype": "image", "shape": shape, "names": ["height", "width", "channels"]}
    change_info(root, features=info["features"])
    return root


def encoded(image: np.ndarray, form: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, form)
    return buffer.getvalue()


def write_lines(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def change_info(root: Path, **values: Any) -> None:
    path = root / "meta/info.json"
    info = json.loads(path.read_text()) | values
    path.write_text(json.dumps({key: value for key, value in info.items() if value is not ...}))


def change_rows(path: Path, **columns: Any) -> None:
    """Replace (or with ..., drop) columns of a parquet file; names with `__` for dots."""
    table = pq.read_table(path)
    for name, values in columns.items():
        key = name.replace("__", ".")
        if key in table.column_names:
            table = table.drop_columns([key])
        if values is not ...:
            table = table.append_column(key, values if isinstance(values, pa.Array) else pa.array(values))
    pq.write_table(table, path)


def change_episodes(root: Path, episode: int, **values: Any) -> None:
    """Change an entry of a v2 folder's meta/episodes.jsonl."""
    path = root / "meta/episodes.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["episode_index"] == episode:
            line.update(values)
    write_lines(path, lines)


def change_episode_table(root: Path, episode: int, **values: Any) -> None:
    """Change an entry of a v3.0 folder's episodes table; `file_index` and `from_timestamp` are the camera's."""
    path = root / "meta/episodes/chunk-000/file-000.parquet"
    columns = pq.read_table(path).to_pydict()
    row = columns["episode_index"].index(episode)
    for name, value in values.items():
        key = next(key for key in columns if key == name or key == f"videos/{CAMERA}/{name}")
        columns[key][row] = value
    pq.write_table(pa.table(columns), path)
