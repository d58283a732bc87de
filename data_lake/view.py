"""A view of a lake data set: the episodes of one source snapshot at one version vector, and where their frames are."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import lance

from data_lake.files import LakePath, read_bytes
from data_lake.references import open_reference, referenced
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


@dataclass(frozen=True, slots=True)
class Outside:
    """A video whose bytes are not in the table."""

    path: Path
    num_bytes: int
    digest: str

    def open(self, where: str) -> BufferedIOBase:
        """Raises UserError LAKE-197 and LAKE-198 as `open_reference`."""
        return open_reference(self.path, self.num_bytes, self.digest, where)


@dataclass(frozen=True, slots=True)
class Videos:
    """The table of mp4s at a version, (video_key, chunk_index, file_index) of each row and the row of each, and by row
    those that are elsewhere."""

    table: lance.LanceDataset
    keys: Sequence[tuple[str, int, int]]
    row_of: Mapping[tuple[str, int, int], int]
    outside: Mapping[int, Outside]


@lru_cache(maxsize=4)
def open_videos(uri: str, version: int) -> Videos:
    """Of `videos.lance` at `uri`; what was opened stays open for the next one who asks."""
    videos = lance.dataset(uri, version=version)
    columns = videos.to_table(columns=["video_key", "chunk_index", "file_index"]).to_pydict().values()
    keys: list[tuple[str, int, int]] = list(zip(*columns, strict=True))
    outside: dict[int, Outside] = {}
    if paths := referenced(videos):
        held = videos.to_table(columns=["file_size", "blake3"]).to_pylist()
        outside = {row: Outside(path, held[row]["file_size"], held[row]["blake3"]) for row, path in paths.items()}
    return Videos(videos, keys, {key: row for row, key in enumerate(keys)}, outside)


def open_video(
    uri: str, version: int, video_key: str, chunk_index: int, file_index: int, *, where: str = ""
) -> BufferedIOBase:
    """A seekable file of one mp4 in the lake, read lazily. where: whose it is, for people.

    Raises UserError PREP-006 when the lake has no such mp4, LAKE-197 and LAKE-198 as `open_reference`.
    """
    videos = open_videos(uri, version)
    row = videos.row_of.get((video_key, chunk_index, file_index))
    if row is not None and (file := videos.outside.get(row)) is not None:
        return file.open(where or f"camera {video_key}")
    found = videos.table.take_blobs("video_bytes", indices=[row])[0] if row is not None else None
    if found is None:
        raise UserError(
            "PREP-006",
            f"no video {video_key!r}, chunk {chunk_index}, file {file_index}",
            where=f"{uri} at version {version}",
            next_step="run `./vlaloop doctor` on the data set",
        )
    return found
