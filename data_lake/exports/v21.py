"""A version as a LeRobot v2.1 folder: one parquet and one mp4 per episode and camera, lists as JSON lines."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from data_lake.exports.meta import info_of, said_beside, tasks_of
from data_lake.exports.stats import VersionStats
from data_lake.exports.v30 import rows_of
from data_lake.exports.videos import Part, split, stored_videos
from data_lake.findings import Finding
from data_lake.version import DatasetVersion

EPISODES_PER_CHUNK = 1000
DATA_PATH = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
VIDEO_PATH = "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"


def write_v21(version: DatasetVersion, stats: VersionStats, folder: Path) -> list[Finding]:
    """Into the empty `folder`; LAKE-134 for each video that had to be encoded anew."""
    _write_meta(version, stats, folder / "meta")
    table = version.table("frames")
    for episode in version.episodes:
        path = folder / DATA_PATH.format(**_numbers(episode))
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows_of(version, table, episode), path, compression="snappy")
    findings = []
    for video in stored_videos(version):
        parts = [
            Part(
                episode=episode["episode_index"],
                from_s=episode[f"videos/{video.key}/from_timestamp"],
                to_s=episode[f"videos/{video.key}/to_timestamp"],
                target=folder / VIDEO_PATH.format(video_key=video.key, **_numbers(episode)),
            )
            for episode in video.episodes
        ]
        findings += split(video, parts, folder / "whole.mp4", float(version.info["fps"]))
    return findings


def _numbers(episode: Mapping[str, Any]) -> dict[str, int]:
    number = episode["episode_index"]
    return {"episode_index": number, "episode_chunk": number // EPISODES_PER_CHUNK}


def _write_meta(version: DatasetVersion, stats: VersionStats, meta: Path) -> None:
    meta.mkdir(parents=True)
    tasks = tasks_of(version, by_position=False)
    v3_only = ("data_files_size_in_mb", "video_files_size_in_mb")
    info = {name: value for name, value in info_of(version).items() if name not in v3_only} | {
        "codebase_version": "v2.1",
        "total_tasks": len(tasks),
        "chunks_size": EPISODES_PER_CHUNK,
        "total_chunks": (len(version.episodes) - 1) // EPISODES_PER_CHUNK + 1,
        "total_videos": len(version.episodes) * len(version.cameras),
        "data_path": DATA_PATH,
        "video_path": VIDEO_PATH,
    }
    (meta / "info.json").write_text(json.dumps(info, indent=4))
    (meta / "stats.json").write_text(json.dumps(stats.whole, indent=4))  # v2.0's, which GR00T goes on reading
    _write_lines(meta / "tasks.jsonl", ({"task_index": n, "task": text} for text, n in tasks.items()))
    listed = ({name: episode[name] for name in ("episode_index", "tasks", "length")} | said
              for episode, said in zip(version.episodes, said_beside(version), strict=True))  # fmt: skip
    _write_lines(meta / "episodes.jsonl", listed)
    numbered = zip(version.episodes, stats.episodes, strict=True)
    _write_lines(
        meta / "episodes_stats.jsonl",
        ({"episode_index": episode["episode_index"], "stats": found} for episode, found in numbered),
    )


def _write_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
