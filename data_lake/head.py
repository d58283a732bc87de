"""A lake data set as a source: what it holds at its newest version, or what a saved view keeps of it.

`ingest.source: lake:NAME`, `lake:NAME@3`, `lake:NAME/VIEW` or `lake:NAME@3/VIEW@2` is looked at once per run; nothing
is read or copied again.
"""

import hashlib
import json
from collections.abc import Collection
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

from data_lake import lake_meta
from data_lake.curation import Row, choose
from data_lake.files import LakePath, replace
from data_lake.ingested import Ingested
from data_lake.meaning import meant, shared_meaning
from data_lake.refs import SourceRef
from data_lake.saved_views import SavedView, open_saved
from data_lake.specs import IngestSpec
from data_lake.version import DatasetVersion, open_version
from data_lake.view import view_bytes
from errors import UserError

SCHEME = "lake:"


def look_at_head(lake: LakePath, source: str) -> SourceRef:
    """The version and the view that `source` names, as a snapshot whose `path` pins both.

    Raises UserError LAKE-002 without such a data set, LAKE-205 without such a view, LAKE-209 when it keeps nothing.
    """
    version, saved = _opened(lake, source)
    entries, meaning = _content(version, saved)
    return SourceRef(
        uri=f"datasets/{version.name}",
        fingerprint=_digest({"episodes": _named(entries), "meaning": meaning}),
        path=f"{SCHEME}{version.name}" + (f"/{saved.title}" if saved else ""),
        num_files=version.manifest.num_videos,
        num_bytes=0,
    )


def take_head(lake: LakePath, source: SourceRef, spec: IngestSpec, out_dir: Path) -> Ingested:
    """The view of the version that `source` is a snapshot of, written like that of any other ingest.

    Raises UserError LAKE-210 when the filter gives other episodes than it gave then.
    """
    version, saved = _opened(lake, source.path)
    entries, meaning = _content(version, saved)
    if _digest({"episodes": _named(entries), "meaning": meaning}) != source.fingerprint:
        raise UserError(
            "LAKE-210",
            f"{source.path} gave other episodes than when the run began: its filter depends on more than the episodes",
            where=saved.choice.where if saved else str(version.root),
            next_step="filter by what is known of the episodes alone, then start a new run",
        )
    view = {
        "dataset": version.root.name,
        "version": version.manifest.version,
        "vector": version.manifest.vector,
        "embodiment": spec.embodiment,
        "meaning": meaning,
        "episodes": entries,
    }
    replace(out_dir / "episodes.json", view_bytes(view))
    for file in ("quarantine.json", "findings.json"):
        replace(out_dir / file, b"[]")
    return Ingested(
        view=view,
        fingerprint=_identity(view),
        num_episodes=len(entries),
        num_quarantined=0,
        num_frames=sum(entry["length"] for entry in entries),
        num_new=0,
        findings=(),
    )


def leave_out(done: Ingested, exclude: Collection[int], out_dir: Path) -> Ingested:
    """`done` without the source episodes `exclude`: the lake keeps them, the view of this ingest does not.

    Raises UserError LAKE-208 for a number that was not ingested, LAKE-209 when nothing is left.
    """
    entries = done.view["episodes"]
    if unknown := set(exclude) - {entry["source_episode"] for entry in entries}:
        raise UserError(
            "LAKE-208",
            f"source episode {min(unknown)} is not among those that were ingested",
            where="ingest.exclude",
            next_step="name episodes by the numbers that their source gave them; those in quarantine are out already",
        )
    view = done.view | {"episodes": [entry for entry in entries if entry["source_episode"] not in exclude]}
    if not view["episodes"]:
        raise UserError("LAKE-209", "every episode is excluded", where="ingest.exclude", next_step="keep some")
    replace(out_dir / "episodes.json", view_bytes(view))
    return changed(
        done,
        view=view,
        fingerprint=_identity(view),
        num_episodes=len(view["episodes"]),
        num_frames=sum(entry["length"] for entry in view["episodes"]),
    )


def _opened(lake: LakePath, source: str) -> tuple[DatasetVersion, SavedView | None]:
    dataset, slash, view = source.removeprefix(SCHEME).partition("/")
    version = open_version(lake, dataset)
    if not slash:
        return version, None
    name, at, revision = view.partition("@")
    if at and not revision.isdecimal():
        raise UserError("LAKE-205", f"not a revision of a view: {revision!r}", where=source, next_step=f"{name}@1")
    return version, open_saved(version.root, name, int(revision) if at else None)


def _content(version: DatasetVersion, saved: SavedView | None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Entries of the episodes, a recording that came in twice counted once, and what they all mean."""
    rows = choose(version, saved.choice) if saved else list(version.episodes)
    if saved and not rows:
        raise UserError(
            "LAKE-209",
            f"the view {saved.title} keeps no episode of {version.name}",
            where=json.dumps({key: value for key, value in saved.as_json()["choice"].items() if value}),
            next_step=f"save it anew: ./vlaloop view {version.root.name} {saved.name} …",
        )
    kept = counted_once(rows)
    return [lake_meta.entry_of(row) for row in kept], shared_meaning(version.root.name, kept)


def counted_once(rows: list[Row]) -> list[Row]:
    """The first of each recording that came in several times."""
    first = {row["content_hash"]: row for row in reversed(rows)}
    return [row for row in rows if first[row["content_hash"]] is row]


def _named(entries: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(entry["source_episode"], entry["content_hash"]) for entry in entries]


def _identity(view: dict[str, Any]) -> str:
    """What downstream identity is made of, as for any other ingest: contents in order, and what they mean."""
    return _digest(
        {"episodes": _named(view["episodes"]), "meaning": meant(view["meaning"]), "embodiment": view["embodiment"]}
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
