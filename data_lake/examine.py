"""Every episode of a source with all that is to be said of it: the one examination of ingest and doctor.

Streams in the source's order; videos are demuxed ahead by threads, each file once.
"""

import hashlib
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from data_lake.checks import check_pictures, check_rows, check_video
from data_lake.findings import Finding, finding
from data_lake.grippers import with_open_as_one
from data_lake.pictures import PicturesIndex, index_pictures
from data_lake.schema import canonical, rows_digest, vectors
from data_lake.sources.episode import Episode, Pictures, Source, SourceCard, VideoSpan, view_name
from data_lake.sources.files import ODD, Unreadable, describe, ensure_present
from data_lake.specs import GripperSpec
from data_lake.statistics import Moments
from data_lake.video import VideoIndex, VideoUnreadable, index_bytes, index_video

OPEN_INDICES = 64
Indices = Mapping[str, Future[VideoIndex] | Future[PicturesIndex]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Examined:
    """rows: canonical, None when the episode is bad. videos: by camera, spans with both ends known. pictures: by
    camera, those that are no video."""

    episode: Episode
    findings: tuple[Finding, ...]
    rows: pa.Table | None = None
    content_hash: str = ""
    videos: Mapping[str, tuple[VideoSpan, VideoIndex]] = field(default_factory=dict)
    pictures: Mapping[str, tuple[Pictures, PicturesIndex]] = field(default_factory=dict)

    @property
    def is_ok(self) -> bool:
        return self.rows is not None


@dataclass(slots=True)
class Tally:
    """What only shows over all episodes: ranges per column, and which content was seen where."""

    moments: dict[str, Moments] = field(default_factory=dict)
    seen: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, examined: Examined) -> None:
        assert examined.rows is not None
        for name in examined.rows.column_names:
            kind = examined.rows[name].type
            if pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type):
                rows_TD = vectors(examined.rows[name])
                if rows_TD is not None:
                    found = Moments.of(rows_TD)
                    self.moments[name] = self.moments[name].merged(found) if name in self.moments else found

    def findings(self) -> list[Finding]:
        """LAKE-052, one per column with dimensions that never change."""
        found = []
        for name, moments in sorted(self.moments.items()):
            still = np.flatnonzero(moments.max_D == moments.min_D)
            if moments.count > 1 and len(still):
                detail = f"{len(still)} of {len(moments.min_D)} in {name} ({_ranges(still)})"
                found.append(finding("LAKE-052", detail))
        return found


def _ranges(numbers: np.ndarray) -> str:
    """`0-3, 7` for 0, 1, 2, 3, 7."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


class Videos:
    """Indices of mp4 files and pictures, made by threads ahead of their use; those of files are kept while they may
    be asked for again."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._known: OrderedDict[Path, Future[VideoIndex]] = OrderedDict()

    def expect(self, view: VideoSpan | Pictures) -> Future[VideoIndex] | Future[PicturesIndex]:
        if isinstance(view, Pictures):
            return self._pool.submit(index_pictures, view)
        path = view.path
        if path not in self._known:
            self._known[path] = self._pool.submit(_index, view)
            while len(self._known) > OPEN_INDICES:
                self._known.popitem(last=False)
        self._known.move_to_end(path)
        return self._known[path]


def _index(view: VideoSpan) -> VideoIndex:
    if view.read is not None:
        return index_bytes(view.read())
    ensure_present(view.path, "LAKE-010")
    return index_video(view.path)


def examine(
    source: Source,
    *,
    workers: int,
    tally: Tally,
    grippers: tuple[GripperSpec, ...] = (),
    check: Callable[[], None] = lambda: None,
) -> Generator[Examined]:
    """Each listed episode once, in order. `check` is called between episodes and may raise."""
    with ThreadPoolExecutor(max_workers=max(1, workers)) as pool:
        videos, ahead = Videos(pool), deque[tuple[Episode, Indices]]()
        for episode in source.episodes():
            ahead.append((episode, {camera: videos.expect(view) for camera, view in episode.views.items()}))
            if len(ahead) > 2 * workers:
                yield _examined(*ahead.popleft(), source.card, grippers, tally)
                check()
        while ahead:
            yield _examined(*ahead.popleft(), source.card, grippers, tally)
            check()


def _examined(
    episode: Episode, indices: Indices, card: SourceCard, grippers: tuple[GripperSpec, ...], tally: Tally
) -> Examined:
    findings = [*episode.findings, *_check_rows(episode, card)]
    videos: dict[str, tuple[VideoSpan, VideoIndex]] = {}
    pictures: dict[str, tuple[Pictures, PicturesIndex]] = {}
    for camera, view in episode.views.items():
        where: dict[str, Any] = {"episode": episode.source_episode, "camera": camera, "file": card.relative(view.path)}
        try:
            index = indices[camera].result()
        except Unreadable as error:
            findings.append(finding(error.code, error.detail, **where))
        except VideoUnreadable as error:
            findings.append(finding("LAKE-023", str(error), **where))
        except ODD as error:
            findings.append(finding("LAKE-031", describe(error), **where))
        else:
            if episode.rows is None or not episode.rows.num_rows:
                continue
            if isinstance(view, Pictures) and isinstance(index, PicturesIndex):
                findings += check_pictures(episode, camera, view, index, card)
                pictures[camera] = (view, index)
            elif isinstance(view, VideoSpan) and isinstance(index, VideoIndex):
                findings += check_video(episode, camera, view, index, card)
                to_s = view.to_s if view.to_s is not None else episode.rows.num_rows / card.fps
                videos[camera] = (replace(view, to_s=to_s), index)
    if episode.rows is None or any(item.severity == "error" for item in findings):
        return Examined(episode=episode, findings=tuple(findings))
    rows, odd = with_open_as_one(canonical(episode.rows), grippers, episode)
    findings += odd
    if any(item.severity == "error" for item in odd):
        return Examined(episode=episode, findings=tuple(findings))
    digests = {key: index.span_digest(span.from_s, span.to_s or 0.0, card.fps) for key, (span, index) in videos.items()}
    digests |= {key: index.digest for key, (_, index) in pictures.items()}
    findings += _repeats(episode, digests, tally)
    examined = Examined(
        episode=episode,
        findings=tuple(findings),
        rows=rows,
        content_hash=_content_hash(rows, digests, card.fps),
        videos=videos,
        pictures=pictures,
    )
    tally.add(examined)
    return examined


def _content_hash(rows: pa.Table, digests: Mapping[str, str], fps: float) -> str:
    whole = hashlib.sha256(rows_digest(rows, fps).encode())
    for camera in sorted(digests):
        whole.update(f"\n{view_name(camera)} {digests[camera]}".encode())
    return whole.hexdigest()


def _check_rows(episode: Episode, card: SourceCard) -> list[Finding]:
    """What is said of the rows; where their form defies the checks, that alone."""
    try:
        return list(check_rows(episode, card))
    except ODD as error:
        return [finding("LAKE-062", describe(error), episode=episode.source_episode, file=episode.file)]


def _repeats(episode: Episode, digests: Mapping[str, str], tally: Tally) -> list[Finding]:
    findings = []
    for camera, digest in digests.items():
        first = tally.seen.setdefault((camera, digest), episode.source_episode)
        if first != episode.source_episode:
            detail = f"also episode {first}'s"
            findings.append(finding("LAKE-033", detail, episode=episode.source_episode, camera=camera))
    return findings
