"""Recordings made for benchmarks: LeRobot v2.1 folders of real H.264, every episode's video another one.

A pool of intra-coded frames is encoded once; each episode takes its packets in an order of its own, so that
gigabytes are written in seconds and no two files are alike.
"""

import json
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FPS = 20
HEIGHT, WIDTH = 480, 640
POOL = 120
CAMERA = "observation.images.front"
STATE_DIM, ACTION_DIM = 8, 7


def write_recordings(folder: Path, num_episodes: int, episode_bytes: int) -> Path:
    """`num_episodes` of about `episode_bytes` of video each, with as many rows as frames."""
    pool, template = _pool(folder)
    length = max(2, int(episode_bytes / np.mean([len(packet) for packet in pool])))
    random = np.random.default_rng(0)
    (folder / "meta").mkdir(parents=True, exist_ok=True)
    lines = []
    for episode in range(num_episodes):
        video = folder / f"videos/chunk-000/{CAMERA}/episode_{episode:06d}.mp4"
        _write_video(video, template, [pool[place] for place in random.integers(0, POOL, length)])
        rows = folder / f"data/chunk-000/episode_{episode:06d}.parquet"
        rows.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(recorded_rows(random, episode, length, FPS), rows)
        lines.append({"episode_index": episode, "tasks": ["move"], "length": length})
    template.unlink()
    write_meta(folder, lines, length, FPS, {CAMERA: (HEIGHT, WIDTH)})
    return folder


def _pool(folder: Path) -> tuple[list[bytes], Path]:
    """Packets of intra-coded noisy frames, and the mp4 that holds them (its stream is the template of others)."""
    folder.mkdir(parents=True, exist_ok=True)
    path, random = folder / "pool.mp4", np.random.default_rng(1)
    with av.open(path, "w") as container:
        stream = container.add_stream("libx264", rate=FPS, options={"g": "1", "crf": "23", "preset": "ultrafast"})
        stream.height, stream.width, stream.pix_fmt = HEIGHT, WIDTH, "yuv420p"
        for _ in range(POOL):
            coarse = random.integers(0, 256, (HEIGHT // 4, WIDTH // 4, 3), np.uint8)
            image = coarse.repeat(4, axis=0).repeat(4, axis=1)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))
    with av.open(path) as container:
        packets = [bytes(packet) for packet in container.demux(video=0) if packet.pts is not None]
    return packets, path


def _write_video(path: Path, template: Path, packets: list[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(template) as source, av.open(path, "w") as container:
        stream = container.add_stream_from_template(source.streams.video[0])
        for number, content in enumerate(packets):
            packet = av.Packet(content)
            packet.stream, packet.is_keyframe = stream, True
            packet.time_base = Fraction(1, FPS)
            packet.pts = packet.dts = number
            container.mux(packet)


def recorded_rows(random: np.random.Generator, episode: int, length: int, fps: int) -> pa.Table:
    """Rows of one episode, as many as its frames: state and action are noise."""
    frame = np.arange(length)
    return pa.table(
        {
            "observation.state": list(random.standard_normal((length, STATE_DIM)).astype(np.float32)),
            "action": list(random.standard_normal((length, ACTION_DIM)).astype(np.float32)),
            "timestamp": (frame / fps).astype(np.float32),
            "frame_index": frame,
            "episode_index": np.full(length, episode),
            "index": episode * length + frame,
            "task_index": np.zeros(length, np.int64),
        }
    )


def write_meta(
    folder: Path, lines: list[dict[str, object]], length: int, fps: int, cameras: dict[str, tuple[int, int]]
) -> None:
    """meta/ of a v2.1 folder; cameras: height and width of each."""
    vectors = {"observation.state": STATE_DIM, "action": ACTION_DIM}
    features: dict[str, object] = {
        name: {"dtype": "float32", "shape": [dims], "names": None} for name, dims in vectors.items()
    }
    for camera, size in cameras.items():
        features[camera] = {"dtype": "video", "shape": [*size, 3], "names": ["height", "width", "channels"]}
    numbers = ("frame_index", "episode_index", "index", "task_index")
    features |= {name: {"dtype": "int64", "shape": [1], "names": None} for name in numbers}
    features["timestamp"] = {"dtype": "float32", "shape": [1], "names": None}
    info = {
        "codebase_version": "v2.1",
        "robot_type": "made",
        "total_episodes": len(lines),
        "total_frames": len(lines) * length,
        "total_tasks": 1,
        "total_videos": len(lines) * len(cameras),
        "total_chunks": 1,
        "chunks_size": 1000,
        "fps": fps,
        "splits": {"train": f"0:{len(lines)}"},
        "data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        "video_path": "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
        "features": features,
    }
    (folder / "meta/info.json").write_text(json.dumps(info))
    (folder / "meta/tasks.jsonl").write_text(json.dumps({"task_index": 0, "task": "move"}) + "\n")
    (folder / "meta/episodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
