"""Examination spread over a cluster: units of neighbouring parts, their episodes in the source's order and as `examine`
gives them.

Memory, whatever the source's size. A unit: rows of four episodes (or a v3.0 data file) and the pictures of one. Here:
one episode. Between: what `cluster.workers` units gave and nobody took, in object stores, beyond their size on disk.
"""

import io
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

import pyarrow as pa

from data_lake.checks import check_trial
from data_lake.cluster import Cluster
from data_lake.examine import NO_DIGESTS, Examined, examine
from data_lake.pictures import as_videos
from data_lake.sources import open_source
from data_lake.sources.episode import NOTHING, Part, Source, SourceCard, VideoSpan
from data_lake.specs import AS_THE_SOURCE_SAYS, ReadSpec
from data_lake.tally import Tally
from data_lake.trial import decode_first
from data_lake.video import VideoIndex
from errors import Transient

UNIT_PARTS = 32
UNIT_SOURCE_BYTES = 64 << 20
"""Of the files of a unit's parts, unless one part alone has more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """Of a source, once. known: parts that are in no unit, and how many episodes each has."""

    key: str
    path: Path = field(compare=False)
    source_format: str = field(compare=False)
    read: ReadSpec = field(compare=False)
    known: Mapping[int, int] = field(compare=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """parts: by their places in the source. digests: of their files, as far as they are known."""

    parts: Mapping[int, Part]
    digests: Mapping[Path, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sent:
    """first: place of the unit's first part. rows: of `examined`, which travels without them, as an Arrow stream."""

    first: int
    examined: Examined
    rows: bytes | None


def examine_afar(
    source: Source,
    *,
    cluster: Cluster,
    tally: Tally,
    read: ReadSpec = AS_THE_SOURCE_SAYS,
    left_out: Mapping[int, int] = NOTHING,
    digests: Mapping[Path, str] = NO_DIGESTS,
    check: Callable[[], None] = lambda: None,
) -> Generator[Examined]:
    """As `examine`; pictures are `made` into videos. Each node has the source at the same path.

    Raises Transient when a node sees another source than this machine, and as `Cluster.spread`.
    """
    kind = type(source)
    reading = Reading(
        key=uuid.uuid4().hex,
        path=source.card.root,
        source_format=f"{kind.__module__}:{kind.__qualname__}",
        read=read,
        known=dict(left_out),
    )
    tried: set[str] = set()
    first, before, num_counted = -1, 0, 0
    units = units_of(source.parts, left_out, digests)
    with closing(cluster.spread(units, partial(_examined, reading))) as given:
        for sent in given:
            if sent.first != first:
                first, before = sent.first, before + num_counted
                num_counted = 0
            num_counted += sent.examined.episode.counted
            examined = _tried(_received(sent, before), tried, source.card)
            tally.sums.merge(examined.sums)
            yield examined
            check()


def units_of(parts: Sequence[Part], left_out: Mapping[int, int], digests: Mapping[Path, str]) -> Iterator[Unit]:
    """All parts that are not left out, in order, in units of at most UNIT_PARTS and UNIT_SOURCE_BYTES, or one part."""
    unit: dict[int, Part] = {}
    num_bytes = 0
    for place, part in enumerate(parts):
        if place in left_out:
            continue
        size = sum(map(_num_bytes, part.files))
        if unit and (len(unit) >= UNIT_PARTS or num_bytes + size > UNIT_SOURCE_BYTES):
            yield _unit(unit, digests)
            unit, num_bytes = {}, 0
        unit[place] = part
        num_bytes += size
    if unit:
        yield _unit(unit, digests)


def _unit(parts: Mapping[int, Part], digests: Mapping[Path, str]) -> Unit:
    files = {file for part in parts.values() for file in part.files}
    return Unit(parts=parts, digests={file: digests[file] for file in files if file in digests})


def _num_bytes(file: Path) -> int:
    """0 for what is not there: a finding, once it is read."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _examined(reading: Reading, unit: Unit) -> Iterator[_Sent]:
    """On a node. Numbers of episodes are as if other units had none."""
    source = _opened(reading)
    parts = source.parts
    if any(place >= len(parts) or parts[place] != part for place, part in unit.parts.items()):
        raise Transient(f"{reading.path} changed while it was read, or is another on this node")
    left_out = {place: reading.known.get(place, 0) for place in range(len(parts)) if place not in unit.parts}
    for examined in examine(
        source, workers=1, tally=Tally(), read=reading.read, left_out=left_out, digests=unit.digests, trial=False
    ):
        yield _sent(next(iter(unit.parts)), examined, source.card.fps)


@lru_cache(maxsize=1)
def _opened(reading: Reading) -> Source:
    """Once for all units that this worker gets of a reading."""
    return open_source(reading.path, reading.read, source_format=reading.source_format)


def _sent(first: int, examined: Examined, fps: float) -> _Sent:
    """Without what was needed to examine it: as small as may be."""
    episode, rows = examined.episode, examined.rows
    columns = None if episode.rows is None else episode.rows.schema.remove_metadata().empty_table()
    light = replace(
        examined,
        episode=replace(episode, rows=columns, views={}, statistics={}),
        rows=None,
        videos={camera: (span, _without_packets(index)) for camera, (span, index) in examined.videos.items()},
        pictures={},
        made=as_videos(examined.pictures, fps),
    )
    return _Sent(first=first, examined=light, rows=None if rows is None else _stream(rows))


def _without_packets(index: VideoIndex) -> VideoIndex:
    """What they told is in the digests."""
    return replace(index, packets=index.packets[:0].copy(), shown_at_s=index.shown_at_s[:0].copy())


def _stream(rows: pa.Table) -> bytes:
    """Of a slice, the slice alone, which pickling does not promise."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def _received(sent: _Sent, before: int) -> Examined:
    """before: episodes of earlier units that are `counted`."""
    rows = None if sent.rows is None else pa.ipc.open_stream(sent.rows).read_all()
    examined = replace(sent.examined, rows=rows)
    return _renumbered(examined, before) if examined.episode.counted and before else examined


def _renumbered(examined: Examined, before: int) -> Examined:
    old = examined.episode.source_episode
    new, sums = old + before, examined.sums
    findings = tuple(replace(item, episode=new) if item.episode == old else item for item in examined.findings)
    return replace(
        examined,
        episode=replace(examined.episode, source_episode=new),
        findings=findings,
        sums=replace(
            sums,
            lengths={new: sums.lengths[old]} if old in sums.lengths else {},
            misfits={(camera, new): count for (camera, _), count in sums.misfits.items()},
        ),
    )


def _tried(examined: Examined, codecs: set[str], card: SourceCard) -> Examined:
    """With a trial of each codec that is not among `codecs`: of the whole source one, and on this machine."""
    found = []
    for camera, (span, index) in examined.videos.items():
        if index.codec not in codecs:
            codecs.add(index.codec)
            trial = decode_first(_file(span))
            found += check_trial(examined.episode, camera, span, trial, index.codec, card)
    if not found:
        return examined
    findings = (*examined.findings, *found)
    if any(item.severity == "error" for item in found):
        sums = replace(examined.sums, moments={})
        return Examined(episode=examined.episode, findings=findings, sums=sums)
    return replace(examined, findings=findings)


def _file(span: VideoSpan) -> str | io.BytesIO:
    return str(span.path) if span.read is None else io.BytesIO(span.read())
