"""What an ingest gives: the view of its source's episodes, those in quarantine, and all that was found."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data_lake.files import replace
from data_lake.findings import Finding, fold
from data_lake.meaning import meant
from data_lake.review import Seen
from data_lake.sources.episode import Source
from data_lake.specs import IngestSpec
from data_lake.tables import Manifest
from data_lake.view import view_bytes
from errors import UserError


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


def write_view(
    out_dir: Path,
    spec: IngestSpec,
    manifest: Manifest,
    meaning: dict[str, Any],
    entries: Sequence[Mapping[str, Any]],
    bad: Sequence[Seen],
    findings: Sequence[Finding],
    *,
    num_new: int,
) -> Ingested:
    """episodes.json, quarantine.json and findings.json, and what they say. entries: of the source's sound episodes."""
    contents = [(entry["source_episode"], entry["content_hash"]) for entry in entries]
    identity = {"episodes": contents, "meaning": meant(meaning), "embodiment": spec.embodiment}
    view = {
        "dataset": spec.dataset,
        "version": manifest.version,
        "vector": manifest.vector,
        "embodiment": spec.embodiment,
        "meaning": meaning,
        "episodes": list(entries),
    }
    quarantine = [
        {
            "episode": each.verdict.source_episode,
            "file": each.verdict.file,
            "lasting": each.lasting,
            "done": "left out of the lake; the other episodes were ingested",
            "findings": [item.as_json() for item in each.findings],
        }
        for each in bad
    ]
    replace(out_dir / "episodes.json", view_bytes(view))
    for name, content in (("quarantine", quarantine), ("findings", [item.as_json() for item in findings])):
        replace(out_dir / f"{name}.json", json.dumps(content, indent=1).encode())
    return Ingested(
        view=view,
        fingerprint=hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest(),
        num_episodes=len(entries),
        num_quarantined=len(bad),
        num_frames=sum(entry["length"] for entry in entries),
        num_new=num_new,
        findings=tuple(findings),
    )


def nothing_sound(source: Source, bad: Sequence[Seen], findings: Sequence[Finding]) -> UserError:
    """LAKE-001."""
    said = fold([*source.card.findings, *findings])
    found = [item for item in said if item.severity == "error"] or said
    shown = "; ".join(f"{item.code} {item.message}" for item in found[:3])
    count = len(bad)
    return UserError(
        "LAKE-001",
        "no episode could be ingested" + (f": {shown}" if shown else " (the source lists none)"),
        where=str(source.card.root),
        done=f"in {count} = ok 0 + quarantined {count}; the data set is unchanged",
        next_step=found[0].fix if found else "name a source that holds episodes",
    )
