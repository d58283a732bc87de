"""Repair of a LeRobot folder's metadata: only what its rows prove. Data and video files are never opened for writing.

The new meta/ is made beside the old one and takes its place at once; the old one stays as `meta.before-repair-<n>`.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from data_lake.files import write_durably
from data_lake.sources.files import Unreadable, read_meta_json, read_meta_lines, read_meta_parquet, read_parquet
from data_lake.sources.lerobot import LeRobotFolder
from data_lake.sources.lerobot_meta import BEFORE, splits_of
from data_lake.sources.lerobot_v2 import stated_by_episode
from data_lake.stated import Column, disagreements, misplaced, numbers_of
from data_lake.statistics import Statistics
from errors import UserError

INFO, LOG = "info.json", "repairs.jsonl"
MAKING = "meta.repairing"
QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}  # as LeRobot 0.4 and later writes them


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One value of one file below meta/: what it was (None: not there) and what the rows say."""

    file: str
    what: str
    was: Any
    now: Any

    def __str__(self) -> str:
        return f"meta/{self.file} {self.what}: {_short(self.was)} -> {_short(self.now)}"


@dataclass(slots=True)
class Truth:
    """What the rows say. statistics: by episode and column. complete: every listed episode's rows were read."""

    lengths: dict[int, int] = field(default_factory=dict)
    statistics: dict[int, dict[str, Statistics]] = field(default_factory=dict)
    complete: bool = True


@dataclass(slots=True)
class Draft:
    """New contents of files below meta/, and what is different in them."""

    files: dict[str, bytes] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)


def repair(root: Path) -> list[Change]:
    """Mend the metadata of the folder `root`; a second call finds nothing to do. Raises UserError LAKE-154 for what
    is no LeRobot folder, LAKE-004 for metadata that cannot be read; then, as after any failure, nothing is changed."""
    _recover(root)
    if not LeRobotFolder.recognises(root):
        raise UserError(
            "LAKE-154", "only a LeRobot folder can be repaired", where=str(root), done="nothing was changed",
            next_step="name the folder that holds meta/info.json",
        )  # fmt: skip
    source = LeRobotFolder(root)
    truth, draft = _read(source), Draft()
    if source.card.version == "v3.0":
        _episode_tables(root, truth, draft)
    else:
        _episode_lines(root, truth, draft)
    _totals(root, source, truth, draft)
    _statistics(root, source, truth, draft)
    if draft.changes:
        _put(root, draft)
    return draft.changes


def _read(source: LeRobotFolder) -> Truth:
    """Episodes whose file holds rows of another, or that are listed twice, prove nothing."""
    truth = Truth()
    for episode in source.episodes():
        doubtful = any(item.code in ("LAKE-021", "LAKE-026") for item in episode.findings)
        owners = _owners(episode.rows)
        if doubtful or episode.rows is None or not episode.rows.num_rows or owners - {episode.source_episode}:
            truth.complete = False
            continue
        truth.lengths[episode.source_episode] = episode.rows.num_rows
        truth.statistics[episode.source_episode] = {
            name: Statistics.of(rows_TD) for name, rows_TD in numbers_of(episode.rows) if np.isfinite(rows_TD).all()
        }
    return truth


def _owners(rows: pa.Table | None) -> set[int]:
    known = rows is not None and "episode_index" in rows.column_names
    return set(rows["episode_index"].unique().to_pylist()) if known and rows is not None else set()


def _episode_lines(root: Path, truth: Truth, draft: Draft) -> None:
    """v2: the lengths of episodes.jsonl."""
    file = "episodes.jsonl"
    lines = list(read_meta_lines(root / "meta" / file))
    before = len(draft.changes)
    for line in lines:
        length = truth.lengths.get(line["episode_index"])
        if length is not None and line.get("length") != length:
            what = f"episode {line['episode_index']} length"
            draft.changes.append(Change(file=file, what=what, was=line.get("length"), now=length))
            line["length"] = length
    if len(draft.changes) > before:
        draft.files[file] = _lines(lines)


def _episode_tables(root: Path, truth: Truth, draft: Draft) -> None:
    """v3.0: lengths, and where each episode's rows begin and end among all."""
    begins = _begins(root) if truth.complete else {}
    for path in sorted((root / "meta/episodes").rglob("*.parquet")):
        file, table, before = path.relative_to(root / "meta").as_posix(), read_meta_parquet(path), len(draft.changes)
        numbers = table["episode_index"].to_pylist()
        for name in ("length", "dataset_from_index", "dataset_to_index"):
            if name not in table.column_names:
                continue
            values = table[name].to_pylist()
            for row, number in enumerate(numbers):
                length, begin = truth.lengths.get(number), begins.get(number)
                true = length if name == "length" else begin
                if true is not None and length is not None and name == "dataset_to_index":
                    true += length
                if true is not None and values[row] != true:
                    draft.changes.append(Change(file=file, what=f"episode {number} {name}", was=values[row], now=true))
                    values[row] = true
            place = table.column_names.index(name)
            table = table.set_column(place, table.schema.field(name), pa.array(values, table[name].type))
        if len(draft.changes) > before:
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink)
            draft.files[file] = sink.getvalue().to_pybytes()


def _begins(root: Path) -> dict[int, int]:
    """By episode the place of its first row among the rows of all data files; empty unless each lies in one piece."""
    place, begins = 0, dict[int, int]()
    last = None
    for path in sorted((root / "data").rglob("*.parquet")):
        try:
            owners = read_parquet(path, ["episode_index"])["episode_index"].to_pylist()
        except Unreadable:
            return {}
        for owner in owners:
            if owner != last and owner in begins:
                return {}
            begins.setdefault(owner, place)
            last, place = owner, place + 1
    return begins


def _totals(root: Path, source: LeRobotFolder, truth: Truth, draft: Draft) -> None:
    """Version, totals and the ends of splits. Totals of rows need every episode's rows."""
    info = read_meta_json(root / "meta" / INFO)
    named = info.get("codebase_version")
    true: dict[str, Any] = dict(source.facts)
    if named is not None and str(named)[:2] == source.card.version[:2]:
        true.pop("codebase_version")
    if truth.complete:
        true["total_frames"] = sum(truth.lengths.values())
    past = max((*truth.lengths, source.card.num_episodes - 1), default=-1) + 1
    spans = splits_of(info)
    clipped = {name: f"{min(span.start, past)}:{min(span.stop, past)}" for name, span in spans.items()}
    if truth.complete and any(span.stop > past for span in spans.values()):
        true["splits"] = {**info["splits"], **clipped}
    wrong = [key for key, value in true.items() if info.get(key) != value]
    draft.changes += [Change(file=INFO, what=key, was=info.get(key), now=true[key]) for key in wrong]
    if wrong:
        draft.files[INFO] = json.dumps(info | {key: true[key] for key in wrong}, indent=4).encode()


def _statistics(root: Path, source: LeRobotFolder, truth: Truth, draft: Draft) -> None:
    """Of columns of numbers, where they are absent, lack a figure or are not those of the rows."""
    if source.card.version == "v2.1":
        _episode_statistics(root, truth, draft)
        return
    whole: dict[str, Statistics] = {}
    for columns in truth.statistics.values():
        for name, found in columns.items():
            whole[name] = whole[name].merged(found) if name in whole else found
    everywhere = [name for name in whole if all(name in columns for columns in truth.statistics.values())]
    path = root / "meta/stats.json"
    stated = read_meta_json(path) if path.is_file() else {}
    if truth.complete:
        fixed = _mended(stated, {name: whole[name] for name in everywhere}, tuple(QUANTILES), "", "stats.json", draft)
        if fixed != stated:
            draft.files["stats.json"] = json.dumps(fixed, indent=4).encode()


def _episode_statistics(root: Path, truth: Truth, draft: Draft) -> None:
    file, stated = "episodes_stats.jsonl", stated_by_episode(root) or {}
    fixed = dict(stated)
    for number, columns in truth.statistics.items():
        fixed[number] = _mended(stated.get(number, {}), columns, (), f"episode {number} ", file, draft)
    if fixed != stated:
        lines = [{"episode_index": number, "stats": stats} for number, stats in sorted(fixed.items())]
        draft.files[file] = _lines(lines)


def _mended(
    stated: Mapping[str, Any],
    columns: Mapping[str, Statistics],
    quantiles: tuple[str, ...],
    whose: str,
    file: str,
    draft: Draft,
) -> dict[str, Any]:
    """`stated` with the columns' true figures where they are missing or wrong."""
    fixed = dict(stated)
    for name, found in columns.items():
        said = dict(stated.get(name, {}))
        needed = {"min", "max", "mean", "std", "count", *(quantiles and ("q01", "q99"))}
        column = Column.of(np.concatenate(found.pieces), found.moments)
        wrong = [*disagreements(name, said, found.moments), *misplaced(name, said, column)]
        if wrong or needed - said.keys():
            what = f"{whose}{name}"
            was = "; ".join(wrong) or (f"without {', '.join(sorted(needed - said.keys()))}" if said else None)
            draft.changes.append(Change(file=file, what=what, was=was, now="computed from the rows"))
            fixed[name] = _figures(found, quantiles)
    return fixed


def _figures(found: Statistics, quantiles: tuple[str, ...]) -> dict[str, Any]:
    moments = found.moments
    figures = {"min": moments.min_D, "max": moments.max_D, "mean": moments.mean_D, "std": moments.std}
    if quantiles:
        figures |= dict(zip(quantiles, found.quantiles(*(QUANTILES[name] for name in quantiles)), strict=True))
    return {name: value.tolist() for name, value in figures.items()} | {"count": [moments.count]}


def _put(root: Path, draft: Draft) -> None:
    """The new meta/ takes the place of the old one, which stays beside it."""
    making, meta = root / MAKING, root / "meta"
    backup = next(path for number in count(1) if not (path := root / f"{BEFORE}{number}").exists())
    try:
        shutil.copytree(meta, making)
        for file, content in draft.files.items():
            _put_file(making / file, content)
        stamp = {"repaired_at": datetime.now(UTC).isoformat(timespec="seconds"), "backup": backup.name}
        known = (meta / LOG).read_bytes() if (meta / LOG).is_file() else b""
        _put_file(making / LOG, known + _lines([{**stamp, **asdict(change)} for change in draft.changes]))
        os.rename(meta, backup)
        try:
            os.rename(making, meta)
        except OSError:
            os.rename(backup, meta)
            raise
    except (OSError, shutil.Error) as error:
        raise UserError(
            "LAKE-155",
            f"the repaired metadata could not be written: {error}",
            where=str(root),
            done="nothing was changed",
            next_step="free space or permissions, then the same command again",
        ) from error
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _recover(root: Path) -> None:
    """After a repair that was killed: between its two renames the old meta/ is put back, its draft is removed."""
    numbers = [path.name.removeprefix(BEFORE) for path in root.glob(f"{BEFORE}*")]
    newest = max((int(number) for number in numbers if number.isdigit()), default=None)
    if newest is not None and not (root / "meta").exists():
        os.rename(root / f"{BEFORE}{newest}", root / "meta")
    shutil.rmtree(root / MAKING, ignore_errors=True)


def _put_file(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)  # a copy of a read-only file is read-only
    write_durably(path, content)


def _lines(lines: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def _short(value: Any) -> str:
    text = "nothing" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 120 else f"{text[:117]}…"
