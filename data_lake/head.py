"""A lake data set as a source: all that it holds at its newest version, for loops that train on what came in.

`ingest.source: lake:NAME` looks at the head once per run; nothing is read or copied again.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from data_lake import lake_meta
from data_lake.files import replace
from data_lake.ingest import Ingested
from data_lake.meaning import MEANT
from data_lake.refs import SourceRef
from data_lake.specs import IngestSpec
from data_lake.tables import Manifest, read_manifest, read_meta
from errors import UserError

SCHEME = "lake:"


def look_at_head(lake: Path, source: str) -> SourceRef:
    """The newest version of the data set in `lake:NAME`, as a snapshot. Raises UserError LAKE-002 without one."""
    name = source.removeprefix(SCHEME)
    root = lake / "datasets" / name
    manifest = read_manifest(root)
    if manifest is None:
        raise UserError(
            "LAKE-002",
            f"the lake has no data set {name!r}",
            where=str(root),
            next_step="./vlaloop ingest PATH --dataset …",
        )
    entries, meaning = _content(root, manifest)
    return SourceRef(
        uri=f"datasets/{name}@{manifest.version}",
        fingerprint=_digest({"episodes": _named(entries), "meaning": meaning}),
        path=f"{SCHEME}{name}@{manifest.version}",
        num_files=manifest.num_videos,
        num_bytes=0,
    )


def take_head(lake: Path, source: SourceRef, spec: IngestSpec, out_dir: Path) -> Ingested:
    """The view of the version that `source` is a snapshot of, written like that of any other ingest."""
    name, _, version = source.path.removeprefix(SCHEME).rpartition("@")
    root = lake / "datasets" / name
    manifest = read_manifest(root, int(version))
    if manifest is None:
        raise UserError("LAKE-002", f"data set {name!r} has no version {version}", where=str(root))
    entries, meaning = _content(root, manifest)
    view = {
        "dataset": name,
        "version": manifest.version,
        "vector": manifest.vector,
        "embodiment": spec.embodiment,
        "meaning": meaning,
        "episodes": entries,
    }
    for file, content in (("episodes.json", view), ("quarantine.json", []), ("findings.json", [])):
        replace(out_dir / file, json.dumps(content, indent=1).encode())
    meant = {key: meaning[key] for key in MEANT}
    return Ingested(
        view=view,
        fingerprint=_digest({"episodes": _named(entries), "meaning": meant, "embodiment": spec.embodiment}),
        num_episodes=len(entries),
        num_quarantined=0,
        num_frames=sum(entry["length"] for entry in entries),
        num_new=0,
        findings=(),
    )


def _content(root: Path, manifest: Manifest) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Entries of all episodes, a recording that came in twice counted once, and what they all mean.

    Raises UserError LAKE-006 when they do not mean the same.
    """
    rows = lake_meta.read_table(read_meta(root, manifest)[lake_meta.EPISODES]).to_pylist()
    first = {row["content_hash"]: row for row in reversed(rows)}
    kept = [row for row in rows if first[row["content_hash"]] is row]
    meanings = [json.loads(row["meaning"]) for row in kept]
    for row, meaning in zip(kept, meanings, strict=True):
        if differing := [name for name in MEANT if meaning[name] != meanings[0][name]]:
            raise UserError(
                "LAKE-006",
                f"episodes of the data set do not agree on {', '.join(differing)}",
                where=f"{root.name} · episode {row['episode_index']} from {row['source']}",
                next_step="keep sources that mean different things in data sets of their own",
            )
    return [lake_meta.entry_of(row) for row in kept], meanings[0]


def _named(entries: list[dict[str, Any]]) -> list[tuple[int, str]]:
    return [(entry["source_episode"], entry["content_hash"]) for entry in entries]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
