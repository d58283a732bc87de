"""What a LeRobot folder says of itself against what is there: totals, splits, statistics."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data_lake.findings import Finding, finding
from data_lake.sources.files import read_meta_json, well_formed
from data_lake.sources.listing import Listing

_SPLIT = re.compile(r"^(\d+):(\d+)$")


def metadata_findings(root: Path, info: Mapping[str, Any], version: str, listing: Listing) -> list[Finding]:
    """Warnings about meta/; none of them keeps an episode out."""
    findings = _totals(info, listing) + _splits(info, listing) + _statistics(root, version)
    if not info["features"]:
        findings.append(finding("LAKE-061", file="meta/info.json"))
    if version != "v3.0":
        findings += _v2_totals(info, listing)
    return findings


def _totals(info: Mapping[str, Any], listing: Listing) -> list[Finding]:
    lengths = [listed.length for listed in listing.episodes]
    counted: dict[str, int] = {"total_episodes": len(listing.episodes)}
    if None not in lengths:
        counted["total_frames"] = sum(length or 0 for length in lengths)
    if listing.tasks:
        counted["total_tasks"] = len(listing.tasks)
    wrong = [f"{name} {info[name]}, listed {n}" for name, n in counted.items() if info.get(name) not in (None, n)]
    return [finding("LAKE-054", "; ".join(wrong), file="meta/info.json")] if wrong else []


def _v2_totals(info: Mapping[str, Any], listing: Listing) -> list[Finding]:
    findings = []
    num_videos = len(listing.episodes) * len(listing.cameras)
    if info.get("total_videos") not in (None, num_videos):
        detail = f"{info['total_videos']}, for {len(listing.episodes)} episodes of {len(listing.cameras)} cameras"
        findings.append(finding("LAKE-041", detail, file="meta/info.json"))
    last = max((listed.episode for listed in listing.episodes), default=0)
    num_chunks = last // int(info.get("chunks_size") or 1000) + 1
    if info.get("total_chunks") not in (None, num_chunks):
        findings.append(finding("LAKE-042", f"{info['total_chunks']}, not {num_chunks}", file="meta/info.json"))
    return findings


def _splits(info: Mapping[str, Any], listing: Listing) -> list[Finding]:
    past = max((listed.episode for listed in listing.episodes), default=-1) + 1
    findings = []
    for name, span in (info.get("splits") or {}).items():
        match = _SPLIT.match(str(span))
        if match and int(match[2]) > max(past, len(listing.episodes)):
            detail = f"{name} is {span}, there are {len(listing.episodes)}"
            findings.append(finding("LAKE-043", detail, file="meta/info.json"))
    return findings


def _statistics(root: Path, version: str) -> list[Finding]:
    if version == "v2.1":
        there = (root / "meta/episodes_stats.jsonl").is_file()
        return [] if there else [finding("LAKE-053", "no meta/episodes_stats.jsonl")]
    path = root / "meta/stats.json"
    if not path.is_file():
        return [finding("LAKE-053", "no meta/stats.json")]
    with well_formed(path):
        stats = {key: dict(value) for key, value in read_meta_json(path).items()}
    without = [key for key in ("observation.state", "action") if key in stats and "count" not in stats[key]]
    return [finding("LAKE-051", ", ".join(without), file="meta/stats.json")] if without else []
