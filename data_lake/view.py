"""A view of a lake data set: the episodes of one source snapshot at one version vector, and where their frames are."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from data_lake.files import LakePath, read_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """Where an episode's frames of one view are: [from_s, to_s) of an mp4 in `videos.lance`."""

    view: str
    video_key: str
    chunk_index: int
    file_index: int
    from_s: float
    to_s: float | None

    @property
    def place(self) -> tuple[str, int, int]:
        """Which mp4: its video_key, chunk_index and file_index."""
        return self.video_key, self.chunk_index, self.file_index


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


def read_view(folder: LakePath) -> DatasetView:
    """Read the view that ingest wrote to `folder`."""
    found = json.loads(read_bytes(folder / "episodes.json"))
    return DatasetView(
        dataset=found["dataset"],
        vector=found["vector"],
        embodiment=found["embodiment"],
        meaning=found["meaning"],
        episodes=tuple(episode_of(entry) for entry in found["episodes"]),
    )


def view_bytes(view: Mapping[str, Any]) -> bytes:
    """episodes.json of a view: a line per episode, so that 100,000 of them are written in a second and compared by
    line."""
    head = json.dumps({name: value for name, value in view.items() if name != "episodes"}, indent=1)
    lines = ",\n  ".join(json.dumps(entry) for entry in view["episodes"])
    return f'{head[:-2]},\n "episodes": [\n  {lines}\n ]\n}}\n'.encode()


def episode_of(entry: dict[str, Any]) -> ViewEpisode:
    """From an entry of episodes.json."""
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
