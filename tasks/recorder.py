"""Demonstrations on disk: one folder per finished episode, and the LeRobot v3.0 folder made of many.

Video is lossless H.264 RGB, so what is trained on is what was rendered, to the last bit.
"""

import json
import os
import shutil
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from data_lake.pictures import LosslessVideo
from model_core.sim.rollout import Frame

MARKER = "episode.json"  # written last: without it the episode does not exist
ROWS = "rows.npz"
LEVELS = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class Episode:
    """A finished episode: arrays by column (T, …), per view its mp4 and its histogram (3, 256) of levels.

    simulator: the fingerprint of what simulated it.
    """

    seed: int
    success: bool
    steps: int
    simulator: dict[str, Any]
    rows: dict[str, np.ndarray]
    videos: dict[str, Path]
    levels: dict[str, np.ndarray]


class EpisodeWriter:
    """Takes the frames of one episode and leaves a folder that is complete or has no marker."""

    def __init__(self, folder: Path, *, views: list[str], fps: float) -> None:
        if folder.exists():  # half an episode of a worker that died
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        self._folder = folder
        self._videos = {view: LosslessVideo(folder / f"{view}.mp4", fps) for view in views}
        self._levels = {view: np.zeros((3, LEVELS), np.int64) for view in views}
        self._frames: list[Frame] = []

    def add(self, frame: Frame) -> None:
        """One control step. Between rendered frames the video holds the last picture."""
        for view, video in self._videos.items():
            if frame.views is not None:
                self._levels[view] += _histogram(frame.views[view])
            video.add(frame.views[view] if frame.views is not None else None)
        self._frames.append(frame)

    def finish(self, told: dict[str, Any]) -> None:
        """Close the files and write the marker, with `told` (seed, success, steps, simulator) and sizes."""
        for video in self._videos.values():
            video.close()
        np.savez(
            self._folder / ROWS,
            allow_pickle=False,
            state=np.array([frame.proprio for frame in self._frames], np.float32),
            action=np.array([frame.label for frame in self._frames], np.float32),
            executed=np.array([frame.executed for frame in self._frames], np.float32),
            success=np.array([frame.success for frame in self._frames], bool),
            **{f"levels.{view}": levels for view, levels in self._levels.items()},
        )
        sizes = {path.name: path.stat().st_size for path in sorted(self._folder.iterdir())}
        staged = self._folder / f"{MARKER}.tmp"
        staged.write_text(json.dumps({**told, "views": list(self._videos), "files": sizes}))
        os.replace(staged, self._folder / MARKER)


def read_episode(folder: Path) -> Episode | None:
    """The episode in `folder`, or None unless it is complete."""
    marker = folder / MARKER
    if not marker.exists():
        return None
    told = json.loads(marker.read_text())
    if any(_size(folder / name) != size for name, size in told["files"].items()):
        return None
    with np.load(folder / ROWS) as arrays:
        rows = {name: arrays[name] for name in ("state", "action", "executed", "success")}
        levels = {view: arrays[f"levels.{view}"] for view in told["views"]}
    videos = {view: folder / f"{view}.mp4" for view in told["views"]}
    return Episode(
        seed=told["seed"],
        success=told["success"],
        steps=told["steps"],
        simulator=told["simulator"],
        rows=rows,
        videos=videos,
        levels=levels,
    )


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.exists() else None


def write_watchable(path: Path, frames: list[np.ndarray], fps: float) -> None:
    """An mp4 (H.264, yuv420p) that any browser plays, of (H, W, 3) uint8 RGB frames; H and W even."""
    with av.open(path, "w", options={"movflags": "faststart"}) as container:
        rate = Fraction(fps).limit_denominator(1000)
        stream: Any = container.add_stream("libx264", rate=rate, options={"crf": "20", "preset": "veryfast"})
        stream.height, stream.width, stream.pix_fmt = frames[0].shape[0], frames[0].shape[1], "yuv420p"
        stream.codec_context.thread_count = 1
        for pixels in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")))
        container.mux(stream.encode(None))


def _histogram(pixels_HWC: np.ndarray) -> np.ndarray:
    """How often each of 256 levels occurs, per channel: (3, 256)."""
    offset = pixels_HWC.reshape(-1, 3).astype(np.int64) + np.arange(3) * LEVELS
    return np.bincount(offset.ravel(), minlength=3 * LEVELS).reshape(3, LEVELS)
