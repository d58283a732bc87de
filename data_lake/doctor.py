"""Doctor: what is wrong with a source or a lake data set, by the checks that ingest itself makes."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import lance
import numpy as np

from data_lake import lake_meta
from data_lake.beside import beside_findings
from data_lake.edits.contents import Contents
from data_lake.examine import Examined, examine
from data_lake.files import LakePath
from data_lake.findings import Finding, finding, fold
from data_lake.fitting import Kind, Stranger
from data_lake.inspection import inspect
from data_lake.integrity import damage
from data_lake.lineage import Lineage, elsewhere, lineage, places
from data_lake.meaning import meaning_of
from data_lake.names import NAME
from data_lake.references import open_reference, referenced
from data_lake.sources import format_of, open_source
from data_lake.sources.episode import Source
from data_lake.specs import AS_THE_SOURCE_SAYS, ReadSpec
from data_lake.stored_videos import content_of
from data_lake.tables import FOLDERS, TABLES, Manifest, dataset_root, open_table, read_manifest
from data_lake.tally import Tally, repetition
from data_lake.version import DatasetVersion, number_of, version_at
from errors import UserError

BYTES = frozenset({"LAKE-073", "LAKE-197", "LAKE-198"})
"""Findings of single videos, beside which the others can be looked into."""


def doctor(
    source: str,
    read: ReadSpec = AS_THE_SOURCE_SAYS,
    *,
    lake: LakePath | None = None,
    source_format: str = "auto",
    workers: int = 2,
    deep: bool = False,
) -> dict[str, Any]:
    """`{source, format, version, episodes: {in, ok, quarantined}, tasks, findings}` of a folder, or of a data set
    of `lake` by its name (or path): the newest version, or `NAME@3`, `NAME@TAG`. tasks: number of sound episodes by
    instruction. deep: decode every frame of its videos. Changes nothing. Raises UserError LAKE-002 when there
    is no such thing."""
    path, (name, _, which) = Path(source), source.partition("@")
    named = dataset_root(lake, name) if lake is not None and NAME.fullmatch(name) else None
    if (path / "manifests").is_dir():
        return _of_dataset(source, path, lake, workers=workers, deep=deep)
    if not path.exists() and named is not None and (named / "manifests").is_dir():
        number = number_of(named, which) if which else None
        return _of_dataset(source, named, lake, number, workers=workers, deep=deep)
    try:
        held = lineage(lake) if lake is not None else {}
        return _of_source(
            source, open_source(path, read, source_format=source_format), read, held, workers=workers, deep=deep
        )
    except UserError as error:
        if error.code not in ("LAKE-004", "LAKE-035", "LAKE-036"):
            raise
        kind = format_of(path) if source_format == "auto" else source_format
        return _answer(source, kind or "unknown", "unknown", (0, 0), {}, [_refusal(error)])


def _refusal(error: UserError) -> Finding:
    """What stops an ingest as a whole, as a finding."""
    return Finding(
        code=error.code, severity="error", message=error.message, done="", fix=error.next_step, file=error.where
    )


def _answer(
    source: str, kind: str, version: str, counts: tuple[int, int], tasks: Mapping[str, int], findings: list[Finding]
) -> dict[str, Any]:
    """counts: (episodes in, episodes ok)."""
    return {
        "source": source,
        "format": kind,
        "version": version,
        "episodes": {"in": counts[0], "ok": counts[1], "quarantined": counts[0] - counts[1]},
        "tasks": dict(tasks),
        "findings": [item.as_json() for item in fold(findings)],
    }


def _of_source(name: str, source: Source, read: ReadSpec, held: Lineage, *, workers: int, deep: bool) -> dict[str, Any]:
    """held: what the lake has already."""
    tally, tasks = Tally(), Counter[str]()
    findings, num_in = [*source.card.findings], 0
    try:
        meaning_of(source.card, read)
    except UserError as error:
        findings.append(_refusal(error))
    kind = Kind(source=source, dataset=name, fps=source.card.fps)
    for examined in examine(source, workers=workers, tally=tally, read=read, deep=deep):
        number = examined.episode.source_episode
        strange = _strange(kind, examined) if examined.is_ok else []
        repeated = tally.repeats(number, examined.recording, examined.content_hash, examined.digests)
        findings += [*examined.findings, *strange, *repeated]
        num_in += 1
        if examined.is_ok and not strange:
            tasks[examined.episode.instruction] += 1
            findings += elsewhere(number, places(held, examined.content_hash, examined.recording))
    findings += tally.findings(source.card)
    return _answer(name, source.card.format, source.card.version, (num_in, tasks.total()), tasks, findings)


def _strange(kind: Kind, examined: Examined) -> list[Finding]:
    """In what a sound episode is unlike those before."""
    try:
        kind.admit(examined)
    except Stranger as stranger:
        return stranger.findings(examined.episode)
    return []


def _of_dataset(
    name: str, root: LakePath, lake: LakePath | None, number: int | None = None, *, workers: int, deep: bool
) -> dict[str, Any]:
    """Tables at the vector of that version's manifest, or the newest's; every stored byte of video is read."""
    try:
        manifest = read_manifest(root, number)
        if manifest is None:
            what = "a data set without a finished version" if number is None else f"there is no version {number}"
            raise UserError("LAKE-002", what, where=str(root))
        if found := [finding("LAKE-076", what, file=file) for file, what in damage(root, manifest.files, *FOLDERS)]:
            return _answer(name, "lake", str(manifest.version), (manifest.num_episodes, 0), {}, found)
        tables = {table: open_table(root, manifest, table) for table in TABLES}
        version = version_at(root, manifest)
        episodes = version.episodes
    except UserError as error:
        if error.code != "LAKE-074":
            raise
        found = finding("LAKE-074", error.message, file=error.where)
        return _answer(name, "lake", "unknown", (0, 0), {}, [found])
    findings = list(contents_findings(tables, manifest, episodes, stored=True))
    if all(item.code in BYTES for item in findings):  # where tables do not fit together, nothing is whose it seems
        findings += inspect(tables, version.info, episodes, deep=deep, workers=workers)
    bad = {item.episode for item in findings if item.severity == "error"}
    num_ok = 0 if None in bad else len(episodes) - len(bad)
    tasks = Counter(str(episode["instruction"]) for episode in episodes)
    findings += beside_findings(root)
    findings += _repetitions(version, bad, lineage(lake) if lake is not None else {})
    return _answer(name, "lake", str(manifest.version), (len(episodes), num_ok), tasks, findings)


def _repetitions(version: DatasetVersion, bad: Collection[int | None], held: Lineage) -> Iterator[Finding]:
    """LAKE-147 within the data set, LAKE-148 in another one, for recordings under whatever words; of `bad` episodes,
    under the same ones."""
    contents, seen = Contents(version), dict[str, tuple[int, str]]()
    for episode in version.episodes:
        number, content = episode["episode_index"], episode["content_hash"]
        recording = content if {None, number} & {*bad} else contents.recording(episode)
        first, said = seen.setdefault(recording, (number, content))
        if first != number:
            yield repetition(first, number, reworded=said != content)
        yield from elsewhere(number, places(held, content, recording, but=version.root.name))


def contents_findings(
    tables: Mapping[str, lance.LanceDataset],
    manifest: Manifest,
    episodes: Sequence[Mapping[str, Any]],
    *,
    stored: bool,
) -> Iterator[Finding]:
    """What of `manifest` and `episodes` the tables do not hold. stored: also read every byte of video."""
    yield from _counts(tables, manifest, len(episodes))
    yield from _tiles(episodes, manifest)
    yield from _frames(tables["frames"])
    yield from _videos(tables["videos"], episodes, stored=stored)


def _counts(tables: Mapping[str, lance.LanceDataset], manifest: Manifest, num_episodes: int) -> Iterator[Finding]:
    expected = {"frames": manifest.num_frames, "videos": manifest.num_videos}
    for name, count in expected.items():
        found = tables[name].count_rows()
        if found != count:
            yield finding("LAKE-070", f"{name} has {found}, expected {count}", file=f"{name}.lance")
    if num_episodes != manifest.num_episodes:
        yield finding("LAKE-070", f"episodes are {num_episodes}, expected {manifest.num_episodes}", file="meta.lance")


def _tiles(episodes: Sequence[Mapping[str, Any]], manifest: Manifest) -> Iterator[Finding]:
    """Episode ranges fill [0, num_frames) in order, without gap or overlap."""
    expected = 0
    for episode in episodes:
        begin, end = episode["dataset_from_index"], episode["dataset_to_index"]
        if begin != expected or end - begin != episode["length"]:
            yield finding("LAKE-071", f"{begin}:{end} where {expected} is next", episode=episode["episode_index"])
            return
        expected = end
    if expected != manifest.num_frames:
        yield finding("LAKE-071", f"they end at {expected} of {manifest.num_frames} frames")


def _frames(table: lance.LanceDataset) -> Iterator[Finding]:
    place = 0
    for batch in table.to_batches(columns=["index"]):
        index = batch["index"].to_numpy()
        wrong = np.flatnonzero(index != np.arange(place, place + len(index)))
        if len(wrong):
            row = place + int(wrong[0])
            yield finding("LAKE-075", f"row {row} has index {index[wrong[0]]}", row=row, file="frames.lance")
            return
        place += len(index)


def _videos(table: lance.LanceDataset, episodes: Sequence[Mapping[str, Any]], *, stored: bool) -> Iterator[Finding]:
    """Every video that an episode names is there, and, if `stored`, has the bytes that were recorded of it."""
    named: dict[tuple[str, int, int], int] = {}
    for episode in episodes:
        for view in lake_meta.entry_of(episode)["views"].values():
            key = (view["video_key"], view["chunk_index"], view["file_index"])
            named.setdefault(key, episode["episode_index"])
    columns = ["video_key", "chunk_index", "file_index", "file_size", "blake3"]
    rows = table.to_table(columns=columns).to_pylist()
    there = {(row["video_key"], row["chunk_index"], row["file_index"]) for row in rows}
    for key in sorted(named.keys() - there):
        yield finding("LAKE-072", f"file {key[1]}/{key[2]}", episode=named[key], camera=key[0])
    outside = referenced(table) if stored else {}
    for number, row in enumerate(rows if stored else ()):
        key = (row["video_key"], row["chunk_index"], row["file_index"])
        if number in outside:
            yield from _left(outside[number], row, named.get(key))
            continue
        seen = _stored(table, number)
        if seen != (row["file_size"], row["blake3"]):
            detail = f"{seen[0]:,} bytes of BLAKE3 {seen[1][:12]}…, recorded {row['file_size']:,} bytes"
            yield finding("LAKE-073", detail, episode=named.get(key), camera=key[0], file=f"videos.lance row {number}")


def _left(path: Path, row: Mapping[str, Any], episode: int | None) -> Iterator[Finding]:
    """LAKE-197 or LAKE-198 for a file that is only referred to."""
    try:
        open_reference(path, row["file_size"], row["blake3"], f"camera {row['video_key']}").close()
    except UserError as error:
        yield finding(error.code, error.message, episode=episode, camera=row["video_key"], file=str(path))


def _stored(table: lance.LanceDataset, row: int) -> tuple[int, str]:
    """Size and digest of a stored video; (0, reason) when the lake cannot give it back."""
    try:
        stored = table.take_blobs("video_bytes", indices=[row])[0]
        if stored is None:
            return 0, "nothing is stored"
        with stored as blob:
            return content_of(blob)
    except (OSError, ValueError) as error:
        return 0, str(error).splitlines()[0]
