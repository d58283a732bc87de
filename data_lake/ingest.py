"""Episodes of a source into a lake data set: examined, appended once, seen all at once; bad ones in quarantine."""

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from data_lake import lake_meta
from data_lake.cluster import Cluster
from data_lake.declaring import Declared
from data_lake.examine import NO_DIGESTS, Examined
from data_lake.files import LakePath
from data_lake.findings import fold
from data_lake.fitting import STRANGERS, Stranger, fits, same_embodiment, unusual
from data_lake.ingest_pass import Pass, onto_newest
from data_lake.ingested import Ingested, nothing_sound, write_view
from data_lake.journal import Journal, Step
from data_lake.ledger import Ledger, Verdict
from data_lake.meaning import meaning_of
from data_lake.pictures import as_videos
from data_lake.review import Seen, review
from data_lake.runners import Runner
from data_lake.schema import dotted_names, features_of, frames_of
from data_lake.sources import open_source
from data_lake.sources.episode import Source, view_name
from data_lake.sources.snapshot import ensure_covered
from data_lake.specs import IngestSpec
from data_lake.tables import Manifest
from data_lake.tally import add_moments
from errors import Transient

TRIES = 100  # of rival writers, each of which got an episode in
PLAIN = str | int | float | bool | None  # what JSON can hold of what a source says beside
HERE = Runner()
OnProgress = Callable[[int, int, dict[str, float]], None]  # episodes done, of how many, figures


@dataclass(frozen=True, kw_only=True, slots=True)
class _Order:
    """What is to be done, and how, whatever the base version is."""

    path: Path
    spec: IngestSpec
    meaning: dict[str, Any]
    label: str
    dims: tuple[int, int] | None
    digests: Mapping[Path, str]
    workers: int
    check: Callable[[], None]
    cluster: Cluster | None

    @property
    def read_as(self) -> str:
        """All that decides what an episode of given files is, and whether it is taken."""
        spec = self.spec
        return json.dumps([spec.format, spec.embodiment, self.dims, asdict(spec.read)], sort_keys=True)

    @property
    def key(self) -> str:
        """What makes another attempt the same ingest."""
        below = len(str(self.path))
        files = sorted((str(file)[below:], digest) for file, digest in self.digests.items())
        return json.dumps([self.label, self.read_as, files])


def ingest_source(
    path: Path,
    spec: IngestSpec,
    *,
    dataset_root: LakePath,
    out_dir: Path,
    label: str = "",
    dims: tuple[int, int] | None = None,
    usual: tuple[float, tuple[str, ...]] | None = None,
    digests: Mapping[Path, str] = NO_DIGESTS,
    workers: int = 2,
    runner: Runner = HERE,
    on_progress: OnProgress = lambda _done, _total, _figures: None,
    check: Callable[[], None] = lambda: None,
    unchanged: Callable[[], object] = lambda: None,
) -> Ingested:
    """Append what is new of the source at `path`; write episodes.json, quarantine.json and findings.json.

    label: what people call the source. dims: (state, action) dimensions of the embodiment, usual: its rate in Hz and
    cameras. digests: of the contents of the source's files; what they vouch for is not read again, nor written again
    after a crash. workers: threads. runner: who examines and stores, with the same outcome. check: called between
    episodes, may raise. unchanged: raises when the source is not what `digests` are of; called before committing.
    Raises UserError LAKE-001 when no episode is sound, LAKE-005 and LAKE-006 when they do not fit, LAKE-241.
    """
    source = open_source(path, spec.read, source_format=spec.format)
    same_embodiment(source, spec)
    ensure_covered((file for part in source.parts for file in part.files), digests)
    of_card = (*source.card.findings, *unusual(source.card, usual))
    with runner.cluster() as cluster:
        order = _Order(
            path=path, spec=spec, meaning=meaning_of(source.card, spec.read), label=label or path.name, dims=dims,
            digests=digests, workers=workers, check=check, cluster=cluster,
        )  # fmt: skip
        ledger = Ledger(dataset_root / "examined", source, order.read_as, digests)
        for _ in range(TRIES):
            done = _begin(dataset_root, order)
            _read(done, source, ledger, order, on_progress)
            unchanged()
            is_new = done.declared.settle(is_new=bool(done.added)) or done.writer.is_changed
            manifest = _commit(done, source, order) if is_new else done.writer.base
            if done.journal is not None:
                done.journal.close()
            if manifest is not None:
                ledger.close()
                findings = fold([*of_card, *done.findings, *done.tally.findings(source.card)])
                return write_view(
                    out_dir, spec, manifest, order.meaning, done.entries, done.bad, findings, num_new=len(done.added)
                )
    raise Transient(f"{TRIES} other writers appended to {dataset_root.name} first")


def _read(done: Pass, source: Source, ledger: Ledger, order: _Order, on_progress: OnProgress) -> None:
    num_frames, total = 0, source.card.num_episodes
    left_in = {file.resolve(): digest for file, digest in order.digests.items()} if done.writer.has_left else NO_DIGESTS
    episodes = review(
        source,
        ledger,
        digests=order.digests,
        is_held=lambda verdict: _is_held(done, verdict, left_in),
        tally=done.tally,
        read=order.spec.read,
        workers=order.workers,
        check=order.check,
        cluster=order.cluster,
    )
    with closing(episodes):
        for number, seen in enumerate(episodes, start=1):
            done.findings += seen.findings
            if not seen.verdict.content_hash:
                done.bad.append(seen)
            elif (entry := _entry(done, seen, source, order)) is not None:
                done.declared.of_held(entry["episode_index"])
                done.entries.append(entry)
                num_frames += entry["length"]
            on_progress(number, total, {"frames": num_frames, "quarantined": len(done.bad)})
    done.ensure_some_fit(1)
    if not done.entries:
        raise nothing_sound(source, done.bad, done.findings)


def _entry(done: Pass, seen: Seen, source: Source, order: _Order) -> dict[str, Any] | None:
    """Of a sound episode, that of the view; None for a stranger, which was turned away."""
    if seen.examined is None:
        return done.held.find(seen.verdict.source_episode, seen.verdict.content_hash)
    try:
        fits(seen.examined, order.dims, order.spec)
        return _taken(done, seen.examined, source)
    except Stranger as stranger:
        done.turn_away(seen, stranger)
        done.ensure_some_fit(STRANGERS)
        return None


def _begin(root: LakePath, order: _Order) -> Pass:
    declared = Declared(dataset=root.name, source=str(order.path), recorded=(), said=order.meaning)
    done = onto_newest(root, order.label, order.spec, declared=declared, cluster=order.cluster)
    if not order.digests or order.spec.copy == "reference":  # what stays where it is costs no bytes to refer to again
        return done
    done.journal = Journal(root, done.writer.base.version if done.writer.base else 0, order.key)
    left = done.journal.take_up()
    if left is not None:
        done.writer.adopt(left.durable, left.pending)
        done.added, done.features, done.new_moments = left.entries, left.features, left.moments
        done.held.put(left.entries, dict)
        for text in (text for entry in left.entries for text in entry["tasks"]):
            done.tasks.setdefault(text, len(done.tasks))
    return done


def _is_held(done: Pass, verdict: Verdict, digests: Mapping[Path, str]) -> bool:
    """Whether the data set has the episode, as it is or as it came, and its videos are where they are to be."""
    entry = done.held.find(verdict.source_episode, verdict.content_hash)
    return entry is not None and all(done.writer.is_where(view, digests) for view in entry["views"].values())


def _taken(done: Pass, examined: Examined, source: Source) -> dict[str, Any]:
    """The view's entry of what is in the data set, as it is or as it came, or goes into it now."""
    known = done.held.find(examined.episode.source_episode, examined.content_hash)
    if known is None:
        return _append(done, examined, source)
    for camera, (span, index) in examined.videos.items():  # which may lie elsewhere now
        done.writer.add_video(camera, span.read or span.path, index)
    return known


def _append(done: Pass, examined: Examined, source: Source) -> dict[str, Any]:
    rows, episode, writer = examined.rows, examined.episode, done.writer
    assert rows is not None
    done.kind(source).admit(examined)
    if not done.added:
        done.declared.of_new()
    for text in rows["task"].unique().to_pylist():
        done.tasks.setdefault(text, len(done.tasks))
    first, number = writer.num_frames, writer.num_held + len(done.added)
    frames = frames_of(rows, fps=source.card.fps, episode=number, first_index=first, tasks=done.tasks)
    names = dotted_names(episode, source.card.features)
    done.features = {**features_of(frames.schema, names), **done.features}
    views = {}
    made = examined.made or as_videos(examined.pictures, source.card.fps)
    for camera, (span, index) in {**examined.videos, **made}.items():
        place = writer.add_video(camera, span.read or span.path, index)
        done.features.setdefault(camera, lake_meta.video_feature(index, source.card.fps, from_pictures=camera in made))
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
        lake_meta.RECORDING: examined.recording,
        "source": done.label,
        "extra": {name: value for name, value in episode.extra.items() if isinstance(value, PLAIN)},
    }
    done.held.keep(entry)
    done.added.append(entry)
    if done.journal is not None and not writer.has_left:  # a video that was left, and goes in now, is no new one
        features, moments = dict(done.features), dict(done.new_moments)
        step = Step(entry=entry, frames=frames, num_videos=writer.num_put, features=features, moments=moments)
        done.journal.add(step, writer.durable())
    return entry


def _commit(done: Pass, source: Source, order: _Order) -> Manifest | None:
    known = lake_meta.read_table(done.meta[lake_meta.EPISODES]) if done.meta else None
    if known is not None and done.declared.filled:
        known = lake_meta.with_meanings(known, done.declared.filled)
    features = {**done.features, **(done.info["features"] if done.info else {})}
    info = lake_meta.info_json(
        fps=source.card.fps,
        robot=done.info["robot_type"] if done.info else source.card.robot,
        features=features,
        num_episodes=done.writer.num_held + len(done.added),
        num_frames=done.writer.num_frames,
        num_tasks=len(done.tasks),
        declared=done.info["vlaloop"] if done.info else {"embodiment": order.spec.embodiment},
    )
    meta = {
        lake_meta.INFO: json.dumps(info, indent=1).encode(),
        lake_meta.STATS: lake_meta.stats_with(done.meta, done.new_moments, features),
        lake_meta.TASKS: lake_meta.parquet_bytes(lake_meta.tasks_table(done.tasks)),
        lake_meta.EPISODES: lake_meta.parquet_bytes(lake_meta.episodes_table(known, done.added, order.meaning)),
    }
    return done.writer.commit(meta, num_episodes=done.writer.num_held + len(done.added), edit=done.declared.edit)
