"""Episodes of a source into a lake data set: examined, appended once, seen all at once; bad ones in quarantine."""

import hashlib
import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from data_lake import lake_meta
from data_lake.examine import Examined, examine
from data_lake.files import LakePath, replace
from data_lake.findings import Finding, fold
from data_lake.fitting import fits, same_embodiment, same_kind
from data_lake.meaning import meaning_of, meant
from data_lake.pictures import lossless_mp4
from data_lake.schema import features_of, frames_of, lake_name
from data_lake.shelf import Content
from data_lake.sources import open_source
from data_lake.sources.episode import Source, VideoSpan, view_name
from data_lake.specs import IngestSpec
from data_lake.statistics import Moments
from data_lake.tables import Manifest, read_meta
from data_lake.tally import Tally, add_moments
from data_lake.video import VideoIndex, index_bytes
from data_lake.writer import Writer
from errors import Transient, UserError

TRIES = 100  # of rival writers, each of which got an episode in

PLAIN = str | int | float | bool | None  # what JSON can hold of what a source says beside
OnProgress = Callable[[int, int, dict[str, float]], None]  # episodes done, of how many, figures


def silent(_done: int, _total: int, _figures: dict[str, float]) -> None:
    """Nobody listens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ingested:
    """What one source snapshot is in the lake. view: the content of episodes.json. fingerprint: digests the
    episodes' contents in order and what is declared of them, never names or places."""

    view: dict[str, Any]
    fingerprint: str
    num_episodes: int
    num_quarantined: int
    num_frames: int
    num_new: int
    findings: tuple[Finding, ...]


@dataclass(slots=True)
class _Pass:
    """One reading of the source onto one base version."""

    writer: Writer
    label: str
    meta: dict[str, bytes]
    info: dict[str, Any] | None
    tasks: dict[str, int]
    ledger: dict[tuple[int, str], dict[str, Any]]
    tally: Tally = field(default_factory=Tally)
    new_moments: dict[str, Moments] = field(default_factory=dict)
    features: dict[str, Any] = field(default_factory=dict)
    entries: list[dict[str, Any]] = field(default_factory=list)
    added: list[dict[str, Any]] = field(default_factory=list)
    bad: list[Examined] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def ingest_source(
    path: Path,
    spec: IngestSpec,
    *,
    dataset_root: LakePath,
    out_dir: Path,
    label: str = "",
    dims: tuple[int, int] | None = None,
    workers: int = 2,
    on_progress: OnProgress = silent,
    check: Callable[[], None] = lambda: None,
    unchanged: Callable[[], None] = lambda: None,
) -> Ingested:
    """Append what is new of the source at `path`; write episodes.json, quarantine.json and findings.json.

    label: what people call the source. dims: (state, action) dimensions of the embodiment. check: called between
    episodes, may raise. unchanged: raises when the source is no longer the snapshot; called before reading and
    before committing. Raises UserError LAKE-001 when no episode is sound, LAKE-005 and LAKE-006 when they do not fit.
    """
    unchanged()
    source = open_source(path, spec.read, source_format=spec.format)
    meaning = meaning_of(source.card, spec.read)
    same_embodiment(source, spec)
    for _ in range(TRIES):
        done = _begin(dataset_root, label or path.name, leave=spec.copy == "reference")
        _read(done, source, spec, dims, workers, on_progress, check)
        if not done.entries:
            raise _nothing(source, done)
        unchanged()
        manifest = (
            done.writer.base if not (done.added or done.writer.is_changed) else _commit(done, source, spec, meaning)
        )
        if manifest is not None:
            return _written(done, manifest, source, spec, meaning, out_dir)
    raise Transient(f"{TRIES} other writers appended to {dataset_root.name} first")


def _read(
    done: _Pass,
    source: Source,
    spec: IngestSpec,
    dims: tuple[int, int] | None,
    workers: int,
    on_progress: OnProgress,
    check: Callable[[], None],
) -> None:
    num_frames, total = 0, source.card.num_episodes
    episodes = examine(source, workers=workers, tally=done.tally, read=spec.read, check=check)
    with closing(episodes):  # its threads end before an error is told
        for number, examined in enumerate(episodes, start=1):
            done.findings += examined.findings
            if examined.rows is None:
                done.bad.append(examined)
            else:
                fits(examined, dims, spec)
                _append(done, examined, source)
                num_frames += examined.rows.num_rows
            on_progress(number, total, {"frames": num_frames, "quarantined": len(done.bad)})


def _begin(root: LakePath, label: str, *, leave: bool) -> _Pass:
    writer = Writer(root, leave=leave)
    if writer.base is None:
        return _Pass(writer=writer, label=label, meta={}, info=None, tasks={}, ledger={})
    meta = read_meta(root, writer.base)
    tasks = lake_meta.read_table(meta[lake_meta.TASKS])
    rows = lake_meta.read_table(meta[lake_meta.EPISODES]).to_pylist()
    return _Pass(
        writer=writer,
        label=label,
        meta=meta,
        info=json.loads(meta[lake_meta.INFO]),
        tasks=dict(zip(tasks["task"].to_pylist(), tasks["task_index"].to_pylist(), strict=True)),
        ledger=lake_meta.ledger_of(rows),
    )


def _append(done: _Pass, examined: Examined, source: Source) -> None:
    """Into the tables, unless the ledger has this very content under this very number, as it is or as it came."""
    rows, episode, writer = examined.rows, examined.episode, done.writer
    assert rows is not None
    if known := done.ledger.get((episode.source_episode, examined.content_hash)):
        done.entries.append(known)
        for camera, (span, index) in examined.videos.items():  # which may lie elsewhere now
            writer.add_video(camera, span.read or span.path, index)
        return
    for text in rows["task"].unique().to_pylist():
        done.tasks.setdefault(text, len(done.tasks))
    first, number = writer.num_frames, done.writer.num_held + len(done.added)
    frames = frames_of(rows, fps=source.card.fps, episode=number, first_index=first, tasks=done.tasks)
    features = features_of(frames.schema, _dotted(examined, source))
    same_kind(source, writer.root.name, done.info or {"features": done.features, "fps": source.card.fps}, features)
    done.features = {**features, **done.features}
    views = {}
    for camera, (span, index, content) in _videos(examined, source.card.fps).items():
        place = writer.add_video(camera, content, index)
        shown = lake_meta.video_feature(index, source.card.fps, from_pictures=camera in examined.pictures)
        done.features.setdefault(camera, shown)
        views[view_name(camera)] = {
            "video_key": camera,
            "chunk_index": place.chunk_index,
            "file_index": place.file_index,
            "from_s": span.from_s,
            "to_s": span.to_s,
        }
    writer.add_frames(frames)
    add_moments(done.new_moments, rows)
    entry = {
        "episode_index": number,
        "source_episode": episode.source_episode,
        "length": rows.num_rows,
        "from_index": first,
        "to_index": first + rows.num_rows,
        "instruction": episode.instruction,
        "tasks": rows["task"].unique().to_pylist(),
        "views": views,
        "content_hash": examined.content_hash,
        "source": done.label,
        "extra": {name: value for name, value in episode.extra.items() if isinstance(value, PLAIN)},
    }
    done.ledger[episode.source_episode, examined.content_hash] = entry
    done.added.append(entry)
    done.entries.append(entry)


def _videos(examined: Examined, fps: float) -> dict[str, tuple[VideoSpan, VideoIndex, Content]]:
    """By camera the span, the index and the content of its video; pictures are made into one, losslessly."""
    found: dict[str, tuple[VideoSpan, VideoIndex, Content]] = {
        camera: (span, index, span.read or span.path) for camera, (span, index) in examined.videos.items()
    }
    for camera, (pictures, index) in examined.pictures.items():
        content = lossless_mp4(pictures.frames(), fps)
        span = VideoSpan(path=pictures.path, from_s=0.0, to_s=index.num_frames / fps)
        found[camera] = (span, index_bytes(content), partial(bytes, content))
    return found


def _dotted(examined: Examined, source: Source) -> dict[str, Any]:
    rows = examined.episode.rows
    assert rows is not None
    declared = source.card.features
    names = {name: declared[name].names if name in declared else None for name in rows.column_names}
    return {lake_name(name): (name, dimensions) for name, dimensions in names.items()}


def _nothing(source: Source, done: _Pass) -> UserError:
    said = fold([*source.card.findings, *done.findings])
    found = [item for item in said if item.severity == "error"] or said
    shown = "; ".join(f"{item.code} {item.message}" for item in found[:3])
    count = len(done.bad)
    return UserError(
        "LAKE-001",
        "no episode could be ingested" + (f": {shown}" if shown else " (the source lists none)"),
        where=str(source.card.root),
        done=f"in {count} = ok 0 + quarantined {count}; the data set is unchanged",
        next_step=found[0].fix if found else "name a source that holds episodes",
    )


def _commit(done: _Pass, source: Source, spec: IngestSpec, meaning: dict[str, Any]) -> Manifest | None:
    card = source.card
    moments = dict(lake_meta.moments_of(json.loads(done.meta[lake_meta.STATS]))) if done.meta else {}
    dotted = {lake_name(name): name for name in done.features}
    for name, found in done.new_moments.items():
        key = dotted[name]
        moments[key] = moments[key].merged(found) if key in moments else found
    known = lake_meta.read_table(done.meta[lake_meta.EPISODES]) if done.meta else None
    features = {**done.features, **(done.info["features"] if done.info else {})}
    info = lake_meta.info_json(
        fps=card.fps,
        robot=done.info["robot_type"] if done.info else card.robot,
        features=features,
        num_episodes=done.writer.num_held + len(done.added),
        num_frames=done.writer.num_frames,
        num_tasks=len(done.tasks),
        declared=done.info["vlaloop"] if done.info else {"embodiment": spec.embodiment},
    )
    meta = {
        lake_meta.INFO: json.dumps(info, indent=1).encode(),
        lake_meta.STATS: json.dumps(lake_meta.stats_json(moments)).encode(),
        lake_meta.TASKS: lake_meta.parquet_bytes(lake_meta.tasks_table(done.tasks)),
        lake_meta.EPISODES: lake_meta.parquet_bytes(lake_meta.episodes_table(known, done.added, meaning)),
    }
    return done.writer.commit(meta, num_episodes=done.writer.num_held + len(done.added))


def _written(
    done: _Pass, manifest: Manifest, source: Source, spec: IngestSpec, meaning: dict[str, Any], out_dir: Path
) -> Ingested:
    findings = fold([*source.card.findings, *done.findings, *done.tally.findings(source.card)])
    contents = [(entry["source_episode"], entry["content_hash"]) for entry in done.entries]
    identity = {"episodes": contents, "meaning": meant(meaning), "embodiment": spec.embodiment}
    view = {
        "dataset": spec.dataset,
        "version": manifest.version,
        "vector": manifest.vector,
        "embodiment": spec.embodiment,
        "meaning": meaning,
        "episodes": done.entries,
    }
    quarantine = [
        {
            "episode": bad.episode.source_episode,
            "file": bad.episode.file,
            "done": "left out of the lake; the other episodes were ingested",
            "findings": [item.as_json() for item in bad.findings],
        }
        for bad in done.bad
    ]
    for name, content in (
        ("episodes.json", view),
        ("quarantine.json", quarantine),
        ("findings.json", [item.as_json() for item in findings]),
    ):
        replace(out_dir / name, json.dumps(content, indent=1).encode())
    return Ingested(
        view=view,
        fingerprint=hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest(),
        num_episodes=len(done.entries),
        num_quarantined=len(done.bad),
        num_frames=int(np.sum([entry["length"] for entry in done.entries])),
        num_new=len(done.added),
        findings=tuple(findings),
    )
