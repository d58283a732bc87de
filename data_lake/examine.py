"""Every episode of a source with all that is to be said of it: the one examination of ingest and doctor.

Streams in the source's order; videos are demuxed ahead by threads, each file once.
"""

import hashlib
import io
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from data_lake.checks import check_pictures, check_rows, check_trial, check_video
from data_lake.declared import as_declared
from data_lake.findings import Finding, finding
from data_lake.pictures import PicturesIndex, index_pictures
from data_lake.schema import canonical, rows_digest
from data_lake.sources.episode import NOTHING, Episode, Pictures, Source, SourceCard, VideoSpan, view_name
from data_lake.sources.files import ODD, Unreadable, describe, ensure_present
from data_lake.specs import AS_THE_SOURCE_SAYS, ReadSpec
from data_lake.tally import Sums, Tally
from data_lake.trial import Trial, decode_all, decode_first
from data_lake.video import VideoIndex, VideoUnreadable, index_bytes, index_video

NO_DIGESTS: Mapping[Path, str] = MappingProxyType({})
OPEN_INDICES = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Watched:
    """A video file: what it holds, and what came of decoding it (None where its codec was tried before)."""

    index: VideoIndex
    trial: Trial | None


Indices = Mapping[str, Future[Watched] | Future[PicturesIndex]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Examined:
    """findings: in the episode alone. rows: canonical, None when the episode is bad. recording: as `recording_digest`.
    digests: of what each camera shows. videos: by camera, spans with both ends known. pictures: by camera, those that
    are no video. made: these as videos, where they are made already."""

    episode: Episode
    findings: tuple[Finding, ...]
    sums: Sums
    rows: pa.Table | None = None
    content_hash: str = ""
    recording: str = ""
    digests: Mapping[str, str] = field(default_factory=dict)
    videos: Mapping[str, tuple[VideoSpan, VideoIndex]] = field(default_factory=dict)
    pictures: Mapping[str, tuple[Pictures, PicturesIndex]] = field(default_factory=dict)
    made: Mapping[str, tuple[VideoSpan, VideoIndex]] = field(default_factory=dict)

    @property
    def is_ok(self) -> bool:
        return self.rows is not None


class Videos:
    """Indices of mp4 files and pictures, made by threads ahead of their use; those of files are kept while they may
    be asked for again. A frame of each codec is decoded once where `trial`, every frame of every file where `deep`."""

    def __init__(self, pool: ThreadPoolExecutor, digests: Mapping[Path, str], *, trial: bool, deep: bool) -> None:
        self._pool = pool
        self._digests = digests
        self._trial, self._deep = trial, deep
        self._known: OrderedDict[Path, Future[Watched]] = OrderedDict()
        self._tried: set[str] = set()

    def expect(self, view: VideoSpan | Pictures) -> Future[Watched] | Future[PicturesIndex]:
        if isinstance(view, Pictures):
            return self._pool.submit(index_pictures, view)
        path = view.path
        if path not in self._known:
            self._known[path] = self._pool.submit(self._watch, view)
            while len(self._known) > OPEN_INDICES:
                self._known.popitem(last=False)
        self._known.move_to_end(path)
        return self._known[path]

    def _watch(self, view: VideoSpan) -> Watched:
        content = view.read() if view.read is not None else None
        if content is None:
            ensure_present(view.path, "LAKE-010")
        index = index_video(view.path, self._digests.get(view.path)) if content is None else index_bytes(content)
        if not self._deep and (not self._trial or index.codec in self._tried):
            return Watched(index=index, trial=None)
        self._tried.add(index.codec)
        file = str(view.path) if content is None else io.BytesIO(content)
        return Watched(index=index, trial=decode_all(file) if self._deep else decode_first(file))


def examine(
    source: Source,
    *,
    workers: int,
    tally: Tally,
    read: ReadSpec = AS_THE_SOURCE_SAYS,
    left_out: Mapping[int, int] = NOTHING,
    digests: Mapping[Path, str] = NO_DIGESTS,
    trial: bool = True,
    deep: bool = False,
    check: Callable[[], None] = lambda: None,
) -> Generator[Examined]:
    """Each listed episode once, in order, and alone: what shows beside others is for `tally` to say.

    left_out: parts of the source that are known, as in `Source.episodes`. digests: of its files' contents, as far as
    they are known. trial: decode a frame of each codec. deep: decode every frame. check: called between episodes, may
    raise."""
    with ThreadPoolExecutor(max_workers=max(1, workers)) as pool:
        videos, ahead = Videos(pool, digests, trial=trial, deep=deep), deque[tuple[Episode, Indices]]()
        for episode in source.episodes(left_out):
            ahead.append((episode, {camera: videos.expect(view) for camera, view in episode.views.items()}))
            if len(ahead) > 2 * workers:
                yield _tallied(*ahead.popleft(), source.card, read, tally)
                check()
        while ahead:
            yield _tallied(*ahead.popleft(), source.card, read, tally)
            check()


def _tallied(episode: Episode, indices: Indices, card: SourceCard, read: ReadSpec, tally: Tally) -> Examined:
    found = _examined(episode, indices, card, read)
    tally.sums.merge(found.sums)
    return found


def _examined(episode: Episode, indices: Indices, card: SourceCard, read: ReadSpec) -> Examined:
    sums = Sums()
    findings = [*episode.findings, *_check_rows(episode, card), *sums.look(episode)]
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
            elif isinstance(view, VideoSpan) and isinstance(index, Watched):
                to_s = view.to_s if view.to_s is not None else episode.rows.num_rows / card.fps
                span = replace(view, to_s=to_s)
                findings += check_video(episode, camera, view, index.index, card)
                findings += check_trial(episode, camera, span, index.trial, index.index.codec, card)
                if view.to_s is None and len(index.index.times_s) != episode.rows.num_rows:
                    sums.misfits[camera, episode.source_episode] = len(index.index.times_s)
                videos[camera] = (span, index.index)
    if episode.rows is None or any(item.severity == "error" for item in findings):
        return Examined(episode=episode, findings=tuple(findings), sums=sums)
    rows, odd = as_declared(canonical(episode.rows), read, episode)
    findings += odd
    if any(item.severity == "error" for item in odd):
        return Examined(episode=episode, findings=tuple(findings), sums=sums)
    digests = {key: index.span_digest(span.from_s, span.to_s or 0.0, card.fps) for key, (span, index) in videos.items()}
    digests |= {key: index.digest for key, (_, index) in pictures.items()}
    content_hash = episode_digest(rows, digests, card.fps)
    sums.add(rows)
    return Examined(
        episode=episode,
        findings=tuple(findings),
        sums=sums,
        rows=rows,
        content_hash=content_hash,
        recording=recording_digest(rows, digests, card.fps),
        digests=digests,
        videos=videos,
        pictures=pictures,
    )


def episode_digest(rows: pa.Table, digests: Mapping[str, str], fps: float) -> str:
    """What an episode is known by: SHA-256 over its canonical rows and, by camera, the digests of what was seen."""
    whole = hashlib.sha256(rows_digest(rows, fps).encode())
    for camera in sorted(digests):
        whole.update(f"\n{view_name(camera)} {digests[camera]}".encode())
    return whole.hexdigest()


def recording_digest(rows: pa.Table, digests: Mapping[str, str], fps: float) -> str:
    """What a recording is known by, whatever is said of it: its `episode_digest` without the words."""
    return episode_digest(rows.drop_columns(["task"]), digests, fps)


def _check_rows(episode: Episode, card: SourceCard) -> list[Finding]:
    """What is said of the rows; where their form defies the checks, that alone."""
    try:
        return list(check_rows(episode, card))
    except ODD as error:
        return [finding("LAKE-062", describe(error), episode=episode.source_episode, file=episode.file)]
