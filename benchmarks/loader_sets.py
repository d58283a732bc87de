"""Recordings as LeRobot writes them (AV1, a key frame at every second one, two cameras), for `bench loader`.

The small one was written by LeRobot. A large one takes its pairs of packets in other orders, so that gigabytes are
written in seconds and cost as much to decode.
"""

import json
import os
import shutil
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pyarrow.parquet as pq

from benchmarks.recordings import recorded_rows, write_meta
from data_lake.exports import publish_folder
from data_lake.ingest import ingest_source
from data_lake.published import publish_lance
from data_lake.specs import IngestSpec
from data_lake.version import DatasetVersion, open_version
from flows.places import ROOT

SHARED = Path(os.environ.get("VLALOOP_SHARED_DATA", ROOT.parent / "shared" / "data"))
SMALL = SHARED / "lerobot-v3.0-metaworld-by-lerobot"
FPS, HEIGHT, WIDTH = 20, 240, 320
EPISODE_FRAMES = 5000


@dataclass(frozen=True, kw_only=True, slots=True)
class Sets:
    """One data set as each reader takes it. num_bytes: of its videos."""

    version: DatasetVersion
    lerobot: Path
    lance: Path
    num_bytes: int

    @property
    def files(self) -> list[Path]:
        """All files that readers read."""
        return [
            path for root in (Path(str(self.version.root)), self.lerobot) for path in root.rglob("*") if path.is_file()
        ]


def small_set(folder: Path) -> Sets:
    """254 frames, as LeRobot wrote them. Raises FileNotFoundError where they are not."""
    if not SMALL.is_dir():
        raise FileNotFoundError(f"{SMALL.name} is not here (VLALOOP_SHARED_DATA)")
    return _taken_in(SMALL, folder, "small")


def large_set(folder: Path, num_bytes: int) -> Sets:
    """About `num_bytes` of video made of the small one's packets, every episode other ones."""
    source = write_av1(folder / "source", num_bytes)
    sets = _taken_in(source, folder, "large")
    shutil.rmtree(source)
    return sets


def without_cameras(lerobot: Path, target: Path) -> Path:
    """A LeRobot v3.0 folder as it would be, had only the robot been recorded."""
    shutil.copytree(lerobot, target, ignore=shutil.ignore_patterns("videos"))
    info = json.loads((target / "meta/info.json").read_text())
    info["features"] = {name: each for name, each in info["features"].items() if each["dtype"] != "video"}
    (target / "meta/info.json").write_text(json.dumps(info))
    return target


def _taken_in(source: Path, folder: Path, name: str) -> Sets:
    spec = IngestSpec(dataset=name, embodiment="made")
    root = folder / "lake/datasets" / name
    ingest_source(source, spec, dataset_root=root, out_dir=folder / "lake/ingest" / name)
    version = open_version(folder / "lake", name)
    lerobot = folder / f"{name}-lerobot"
    publish_folder(version, lerobot, "v3.0")
    videos = version.table("videos").to_table(columns=["file_size"])["file_size"].to_numpy()
    return Sets(
        version=version, lerobot=lerobot, lance=Path(str(publish_lance(version)[0])), num_bytes=int(videos.sum())
    )


def write_av1(folder: Path, num_bytes: int) -> Path:
    """A LeRobot v2.1 folder of episodes of EPISODE_FRAMES frames."""
    pools = {path.parents[1].name: _pairs(path) for path in sorted(SMALL.glob("videos/*/chunk-000/file-000.mp4"))}
    pair_bytes = sum(np.mean([len(key) + len(other) for key, other in pairs]) for _, pairs in pools.values())
    num_episodes = max(2, int(num_bytes / (pair_bytes * EPISODE_FRAMES / 2)))
    random = np.random.default_rng(0)
    lines = []
    for episode in range(num_episodes):
        for camera, (template, pairs) in pools.items():
            chosen = random.integers(0, len(pairs), EPISODE_FRAMES // 2)
            path = folder / f"videos/chunk-000/{camera}/episode_{episode:06d}.mp4"
            _write_video(path, template, [packet for pair in chosen for packet in pairs[pair]])
        rows = folder / f"data/chunk-000/episode_{episode:06d}.parquet"
        rows.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(recorded_rows(random, episode, EPISODE_FRAMES, FPS), rows)
        lines.append({"episode_index": episode, "tasks": ["move"], "length": EPISODE_FRAMES})
    (folder / "meta").mkdir()
    write_meta(folder, lines, EPISODE_FRAMES, FPS, dict.fromkeys(pools, (HEIGHT, WIDTH)))
    return folder


def _pairs(path: Path) -> tuple[Path, list[tuple[bytes, bytes]]]:
    """The file itself, and its key packets that a dependent one follows, each with that one."""
    with av.open(path) as container:
        found = [(bytes(p), p.is_keyframe) for p in container.demux(video=0) if p.pts is not None]
    return path, [(one, other) for (one, key), (other, again) in pairwise(found) if key and not again]


def _write_video(path: Path, template: Path, packets: list[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(template) as source, av.open(path, "w") as container:
        stream = container.add_stream_from_template(source.streams.video[0], opaque=True)
        for number, content in enumerate(packets):
            packet = av.Packet(content)
            packet.stream, packet.is_keyframe = stream, number % 2 == 0
            packet.time_base = Fraction(1, FPS)
            packet.pts = packet.dts = number
            packet.duration = 1
            container.mux(packet)
