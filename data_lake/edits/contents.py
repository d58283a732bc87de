"""The digests of a stored episode, computed anew from its rows and its videos, as ingest computed them."""

import io
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from data_lake import lake_meta
from data_lake.decode import frames
from data_lake.examine import episode_digest, recording_digest
from data_lake.pictures import index_pictures
from data_lake.schema import PLACE
from data_lake.sources.episode import Pictures
from data_lake.stored_videos import Place, open_video
from data_lake.version import DatasetVersion
from data_lake.video import VideoIndex, index_bytes
from errors import UserError


class Contents:
    """Of the episodes of one version; each video is demuxed once."""

    def __init__(self, version: DatasetVersion) -> None:
        self._version = version
        self._texts = {number: text for text, number in version.tasks.items()}
        self._indices: dict[Place, VideoIndex] = {}

    def relabelled(self, episode: Mapping[str, Any], instruction: str) -> str:
        """The content hash that `episode` (a row of the episodes table) gets when all its rows say `instruction`: that
        of the same recording, had its source said so. Raises UserError LAKE-186 when its present hash does not come
        out of what is stored."""
        rows, digests, fps = self._stored(episode)
        task = pa.array([instruction] * rows.num_rows, pa.string())
        return episode_digest(rows.set_column(rows.column_names.index("task"), "task", task), digests, fps)

    def recording(self, episode: Mapping[str, Any]) -> str:
        """What `episode` is known by, whatever is said of it: as ingest noted it, or computed where it came in before
        there was such a note. Raises UserError LAKE-186 as `relabelled`."""
        return episode.get(lake_meta.RECORDING) or recording_digest(*self._stored(episode))

    def _stored(self, episode: Mapping[str, Any]) -> tuple[pa.Table, dict[str, str], float]:
        """Canonical rows, by camera the digests of what was seen, and the rate, which all give the content hash."""
        rows, fps = self._rows(episode), json.loads(episode["meaning"])["fps"]
        for digests in self._seen(episode, fps):
            if episode_digest(rows, digests, fps) == episode["content_hash"]:
                return rows, digests, fps
        raise damaged("another content hash comes out", f"{self._version.name} · episode {episode['episode_index']}")

    def _rows(self, episode: Mapping[str, Any]) -> pa.Table:
        """Canonical rows, with the words that their task indices stand for."""
        table = self._version.table("frames")
        rows = table.to_table(offset=episode["dataset_from_index"], limit=episode["length"])
        words = pa.array([self._texts[number] for number in rows["task_index"].to_pylist()], pa.string())
        return rows.drop_columns(list(PLACE)).append_column("task", words)

    def _seen(self, episode: Mapping[str, Any], fps: float) -> Iterator[dict[str, str]]:
        """By camera the digest of what was seen: of packets where the source had a video, of pixels where it had
        pictures. Which of the two is not recorded, the hash itself tells."""
        views = list(lake_meta.entry_of(episode)["views"].values())
        packets = [self._index(view).span_digest(view["from_s"], view["to_s"], fps) for view in views]
        keys = [view["video_key"] for view in views]
        yield dict(zip(keys, packets, strict=True))
        may_be = [view["from_s"] == 0.0 and len(self._index(view).times_s) == episode["length"] for view in views]
        if any(may_be):
            both = [
                (digest, self._pixels(view, episode["length"], fps)) if possible else (digest,)
                for view, digest, possible in zip(views, packets, may_be, strict=True)
            ]
            yield from (dict(zip(keys, digests, strict=True)) for digests in itertools.product(*both))

    def _index(self, view: Mapping[str, Any]) -> VideoIndex:
        place = (view["video_key"], view["chunk_index"], view["file_index"])
        if place not in self._indices:
            self._indices[place] = index_bytes(read_video(self._version, place))
        return self._indices[place]

    def _pixels(self, view: Mapping[str, Any], length: int, fps: float) -> str:
        place = (view["video_key"], view["chunk_index"], view["file_index"])
        file = io.BytesIO(read_video(self._version, place))
        decoded = (image for _, image in frames(file, from_s=0.0, to_s=None, fps=fps, wanted=range(length)))
        return index_pictures(Pictures(path=Path(place[0]), frames=lambda: decoded)).digest


def read_video(version: DatasetVersion, place: Place) -> bytes:
    """A stored mp4. Raises UserError PREP-006 when the lake has no such mp4."""
    with open_video(str(version.root / "videos.lance"), version.manifest.vector["videos"], *place) as file:
        return file.read()


def damaged(what: str, where: str) -> UserError:
    return UserError(
        "LAKE-186",
        f"what is stored is not what was recorded: {what}",
        where=where,
        done="the data set is as it was",
        next_step=f"./vlaloop doctor {where.partition('@')[0].partition(' ')[0]}",
    )
