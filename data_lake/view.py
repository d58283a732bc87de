"""A view of a lake data set: the episodes of one source snapshot at one version vector, and where their frames are."""

import json
from dataclasses import dataclass
from functools import lru_cache
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import lance

from errors import UserError


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """Where an episode's frames of one view are: [from_s, to_s) of an mp4 in `videos.lance`."""

    view: str
    video_key: str
    chunk_index: int
    file_index: int
    from_s: float
    to_s: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ViewEpisode:
    """One episode: its rows are [from_index, from_index + length) of `frames.lance`.

    content_hash: hex digest of its rows and videos, whatever lake or data set it is in.
    """

    episode_index: int
    source_episode: int
    length: int
    from_index: int
    instruction: str
    content_hash: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetView:
    """vector: version of each table. meaning: what was declared of colours, orientation, rate and actions."""

    dataset: str
    vector: dict[str, int]
    embodiment: str
    meaning: dict[str, Any]
    episodes: tuple[ViewEpisode, ...]


def read_view(folder: Path) -> DatasetView:
    """Read the view that ingest wrote to `folder`."""
    found = json.loads((folder / "episodes.json").read_text())
    return DatasetView(
        dataset=found["dataset"],
        vector=found["vector"],
        embodiment=found["embodiment"],
        meaning=found["meaning"],
        episodes=tuple(_episode(entry) for entry in found["episodes"]),
    )


def _episode(entry: dict[str, Any]) -> ViewEpisode:
    return ViewEpisode(
        episode_index=entry["episode_index"],
        source_episode=entry["source_episode"],
        length=entry["length"],
        from_index=entry["from_index"],
        instruction=entry["instruction"],
        content_hash=entry["content_hash"],
        spans=tuple(
            Span(
                view=name,
                video_key=span["video_key"],
                chunk_index=span["chunk_index"],
                file_index=span["file_index"],
                from_s=span["from_s"],
                to_s=span["to_s"],
            )
            for name, span in entry["views"].items()
        ),
    )


@lru_cache(maxsize=4)
def _videos(uri: str, version: int) -> tuple[lance.LanceDataset, dict[tuple[str, int, int], int]]:
    """The table of mp4s, and the row of each (video_key, chunk_index, file_index)."""
    videos = lance.dataset(uri, version=version)
    keys = videos.to_table(columns=["video_key", "chunk_index", "file_index"]).to_pydict().values()
    return videos, {key: row for row, key in enumerate(zip(*keys, strict=True))}


def open_video(uri: str, version: int, video_key: str, chunk_index: int, file_index: int) -> BufferedIOBase:
    """A seekable file of one mp4 in the lake, read lazily. Raises UserError PREP-006 when the lake has no such mp4."""
    videos, row_of = _videos(uri, version)
    row = row_of.get((video_key, chunk_index, file_index))
    found = videos.take_blobs("video_bytes", indices=[row])[0] if row is not None else None
    if found is None:
        raise UserError(
            "PREP-006",
            f"no video {video_key!r}, chunk {chunk_index}, file {file_index}",
            where=f"{uri} at version {version}",
            next_step="run `./vlaloop doctor` on the data set",
        )
    return found
