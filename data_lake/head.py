"""A lake data set as a source: all that it holds at its newest version, for loops that train on what came in.

`ingest.source: lake:NAME` looks at the head once per run; nothing is read or copied again.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from data_lake import lake_meta
from data_lake.files import replace
from data_lake.ingested import Ingested
from data_lake.meaning import meant, shared_meaning
from data_lake.refs import SourceRef
from data_lake.specs import IngestSpec
from data_lake.version import DatasetVersion, open_version

SCHEME = "lake:"


def look_at_head(lake: Path, source: str) -> SourceRef:
    """The newest version of the data set in `lake:NAME`, as a snapshot. Raises UserError LAKE-002 without one."""
    version = open_version(lake, source.removeprefix(SCHEME))
    entries, meaning = _content(version)
    return SourceRef(
        uri=f"datasets/{version.name}",
        fingerprint=_digest({"episodes": _named(entries), "meaning": meaning}),
        path=f"{SCHEME}{version.name}",
        num_files=version.manifest.num_videos,
        num_bytes=0,
    )


def take_head(lake: Path, source: SourceRef, spec: IngestSpec, out_dir: Path) -> Ingested:
    """The view of the version that `source` is a snapshot of, written like that of any other ingest."""
    version = open_version(lake, source.path.removeprefix(SCHEME))
    entries, meaning = _content(version)
    view = {
        "dataset": version.root.name,
        "version": version.manifest.version,
        "vector": version.manifest.vector,
        "embodiment": spec.embodiment,
        "meaning": meaning,
        "episodes": entries,
    }
    for file, content in (("episodes.json", view), ("quarantine.json", []), ("findings.json", [])):
        replace(out_dir / file, json.dumps(content, indent=1).encode())
    return Ingested(
        view=view,
        fingerprint=_digest({"episodes": _named(entries), "meaning": meant(meaning), "embodiment": spec.embodiment}),
        num_episodes=len(entries),
        num_quarantined=0,
        num_frames=sum(entry["length"] for entry in entries),
        num_new=0,
        findings=(),
    )


def _content(version: DatasetVersion) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Entries of all episodes, a recording that came in twice counted once, and what they all mean."""
    first = {row["content_hash"]: row for row in reversed(version.episodes)}
    kept = [row for row in version.episodes if first[row["content_hash"]] is row]
    return [lake_meta.entry_of(row) for row in kept], shared_meaning(version.root.name, kept)


def _named(entries: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(entry["source_episode"], entry["content_hash"]) for entry in entries]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
