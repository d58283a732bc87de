"""The mp4s of a version given out: whole as they are stored, or one per episode, cut between packets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BufferedIOBase
from itertools import islice
from pathlib import Path
from typing import Any

import av
import numpy as np
from blake3 import blake3

from data_lake.decode import frames as decoded
from data_lake.findings import Finding, finding
from data_lake.pictures import LosslessVideo
from data_lake.stored_videos import open_video
from data_lake.version import DatasetVersion
from data_lake.video import VideoIndex, index_video
from errors import UserError

BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """An episode's frames in a stored mp4: [from_s, to_s), and where its own mp4 is to be."""

    episode: int
    from_s: float
    to_s: float
    target: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """One mp4 of the lake, and the episodes whose frames it holds: rows of the episodes table."""

    version: DatasetVersion
    key: str
    chunk_index: int
    file_index: int
    blake3: str
    episodes: tuple[dict[str, Any], ...]

    def open(self) -> BufferedIOBase:
        uri, number = str(self.version.root / "videos.lance"), self.version.manifest.vector["videos"]
        where = f"{self.version.name} · {self.key} · episode {self.episodes[0]['episode_index']}"
        return open_video(uri, number, self.key, self.chunk_index, self.file_index, where=where)

    def copy(self, target: Path) -> None:
        """Its bytes to `target`. Raises UserError LAKE-132 when they are not those that came in."""
        target.parent.mkdir(parents=True, exist_ok=True)
        digest = blake3()
        with self.open() as stored, target.open("xb") as copy:
            for block in iter(partial(stored.read, BLOCK), b""):
                digest.update(block)
                copy.write(block)
        if digest.hexdigest() != self.blake3:
            raise UserError(
                "LAKE-132",
                "the bytes of a stored video are not those that came in",
                where=f"{self.version.name} · {self.key}, chunk {self.chunk_index}, file {self.file_index}",
                done="nothing was written",
                next_step=f"./vlaloop doctor {self.version.root.name}",
            )


def stored_videos(version: DatasetVersion) -> Iterator[Stored]:
    """Each mp4 that an episode of the version names, once."""
    columns = ["video_key", "chunk_index", "file_index", "blake3"]
    rows = version.table("videos").to_table(columns=columns).to_pylist()
    digests = {(row["video_key"], row["chunk_index"], row["file_index"]): row["blake3"] for row in rows}
    named: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    for episode in version.episodes:
        for key in version.cameras:
            place = (key, episode[f"videos/{key}/chunk_index"], episode[f"videos/{key}/file_index"])
            named.setdefault(place, []).append(episode)
    for (key, chunk, file), episodes in sorted(named.items(), key=lambda item: item[0]):
        yield Stored(
            version=version,
            key=key,
            chunk_index=chunk,
            file_index=file,
            blake3=digests[key, chunk, file],
            episodes=tuple(episodes),
        )


def split(stored: Stored, parts: Sequence[Part], whole: Path, fps: float) -> list[Finding]:
    """An mp4 for each part: the stored bytes where it holds that part alone, else its packets where they can stand
    alone, else its frames encoded anew without loss, which is a finding. whole: where the stored mp4 may lie meanwhile.
    """
    stored.copy(whole)
    index, findings = index_video(whole), []
    cuts: list[tuple[Part, np.ndarray]] = []
    for part in parts:
        part.target.parent.mkdir(parents=True, exist_ok=True)
        packets = packets_of(index, part, fps)
        if len(packets) == len(index.packets) and packets_stand_alone(index, packets):
            part.target.write_bytes(whole.read_bytes())
        elif packets_stand_alone(index, packets):
            cuts.append((part, packets))
        else:
            _encode_anew(whole, part, fps)
            findings.append(finding("LAKE-134", episode=part.episode, camera=stored.key))
    _cut(whole, cuts)
    for part, packets in cuts:
        if not np.array_equal(index_video(part.target).packets, index.packets[packets]):
            raise UserError("LAKE-132", "packets changed while they were copied", where=str(part.target))
    whole.unlink()
    return findings


def packets_of(index: VideoIndex, part: Part, fps: float) -> np.ndarray:
    """Numbers of the packets shown in the part, in decoding order; half a frame of slack, as everywhere."""
    slack = 0.5 / fps
    return np.flatnonzero((index.shown_at_s >= part.from_s - slack) & (index.shown_at_s < part.to_s - slack))


def packets_stand_alone(index: VideoIndex, packets: np.ndarray) -> bool:
    """Whether these decode without any other: one run in decoding order, whose first is a keyframe shown first.

    In an open group of pictures, others stand between them or are shown before the keyframe.
    """
    if not len(packets) or packets[-1] - packets[0] != len(packets) - 1:
        return False
    first_s = index.shown_at_s[packets[0]]
    is_key = int(np.searchsorted(index.times_s, first_s)) in index.keyframes
    return is_key and bool(first_s == index.shown_at_s[packets].min())


def _cut(path: Path, cuts: Sequence[tuple[Part, np.ndarray]]) -> None:
    """Copy packets of `path` to the parts' own files, whose clocks start at 0: one pass over it for all."""
    ordered = sorted(cuts, key=lambda cut: int(cut[1][0]))
    with av.open(str(path)) as source:
        stream = source.streams.video[0]
        demuxed = source.demux(stream)
        packets = enumerate(packet for packet in demuxed if packet.pts is not None and not packet.is_discard)
        for part, numbers in ordered:
            mine = (packet for number, packet in packets if number >= numbers[0])
            with av.open(str(part.target), "w", format="mp4") as container:
                copy = container.add_stream_from_template(stream, opaque=True)
                copy.time_base = stream.time_base
                origin = None
                for packet in islice(mine, len(numbers)):
                    origin = packet.pts if origin is None else origin
                    packet.pts = (packet.pts or 0) - (origin or 0)
                    packet.dts = None if packet.dts is None else packet.dts - (origin or 0)
                    packet.stream = copy
                    container.mux(packet)


def _encode_anew(path: Path, part: Part, fps: float) -> None:
    """The part's frames, as they decode to RGB, in lossless H.264."""
    video = LosslessVideo(part.target, fps)
    count = round((part.to_s - part.from_s) * fps)
    with path.open("rb") as file:
        for _, image in decoded(file, from_s=part.from_s, to_s=part.to_s, fps=fps, wanted=range(count)):
            video.add(image)
    video.close()
