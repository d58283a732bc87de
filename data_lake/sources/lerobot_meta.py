"""What a LeRobot folder says of itself against what is there: totals, splits, statistics, tasks, numbers."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data_lake.findings import Finding, finding
from data_lake.sources.files import read_meta_json, well_formed
from data_lake.sources.listing import Listing

_SPLIT = re.compile(r"^(\d+):(\d+)$")
_INFO = "meta/info.json"
BEFORE = "meta.before-repair-"
"""Beginning of the names under which repairs set the old meta/ aside."""

Stated = Mapping[str, Mapping[str, Any]]


def metadata_findings(
    root: Path, info: Mapping[str, Any], version: str, listing: Listing, stated: Stated | None
) -> list[Finding]:
    """Warnings and notes about meta/; none of them keeps an episode out. stated: of meta/stats.json."""
    findings = _totals(info, listing) + _splits(info, listing) + _statistics(root, version, stated)
    if not info["features"]:
        findings.append(finding("LAKE-061", file=_INFO))
    if version != "v3.0":
        findings += _v2_totals(info, listing)
    return findings + _numbers(listing) + _tasks(listing, version)


def facts(info: Mapping[str, Any], version: str, listing: Listing) -> dict[str, Any]:
    """What totals and version in meta/info.json have to be, as far as the layout and the lists tell."""
    true: dict[str, Any] = {"codebase_version": version, "total_episodes": len(listing.episodes)}
    if listing.tasks or listing.wordless:
        true["total_tasks"] = len(listing.tasks) + len(listing.wordless)
    if version != "v3.0":
        last = max((listed.episode for listed in listing.episodes), default=0)
        true["total_videos"] = len(listing.episodes) * len(listing.cameras)
        true["total_chunks"] = last // int(info.get("chunks_size") or 1000) + 1
    return true


def splits_of(info: Mapping[str, Any]) -> dict[str, range]:
    """Episode numbers by split; what is not of the form `0:10` is left out."""
    matches = {name: _SPLIT.match(str(span)) for name, span in (info.get("splits") or {}).items()}
    return {name: range(int(match[1]), int(match[2])) for name, match in matches.items() if match}


def stated_statistics(root: Path) -> Stated | None:
    """The columns' statistics of meta/stats.json, None when there is no such file. Raises UserError LAKE-004."""
    path = root / "meta/stats.json"
    if not path.is_file():
        return None
    with well_formed(path):
        return {key: dict(value) for key, value in read_meta_json(path).items()}


def _totals(info: Mapping[str, Any], listing: Listing) -> list[Finding]:
    lengths = [listed.length for listed in listing.episodes]
    known = facts(info, "v3.0", listing)
    counted: dict[str, int] = {key: known[key] for key in ("total_episodes", "total_tasks") if key in known}
    if None not in lengths:
        counted["total_frames"] = sum(length or 0 for length in lengths)
    wrong = [f"{name} {info[name]}, listed {n}" for name, n in counted.items() if info.get(name) not in (None, n)]
    return [finding("LAKE-054", "; ".join(wrong), file=_INFO)] if wrong else []


def _v2_totals(info: Mapping[str, Any], listing: Listing) -> list[Finding]:
    findings = []
    true = facts(info, "v2", listing)
    if info.get("total_videos") not in (None, true["total_videos"]):
        detail = f"{info['total_videos']}, for {len(listing.episodes)} episodes of {len(listing.cameras)} cameras"
        findings.append(finding("LAKE-041", detail, file=_INFO))
    if info.get("total_chunks") not in (None, true["total_chunks"]):
        findings.append(finding("LAKE-042", f"{info['total_chunks']}, not {true['total_chunks']}", file=_INFO))
    return findings


def _splits(info: Mapping[str, Any], listing: Listing) -> list[Finding]:
    past = max((listed.episode for listed in listing.episodes), default=-1) + 1
    return [
        finding(
            "LAKE-043",
            f"{name} is {numbers.start}:{numbers.stop}, there are {len(listing.episodes)}",
            file=_INFO,
        )
        for name, numbers in splits_of(info).items()
        if numbers.stop > max(past, len(listing.episodes))
    ]


def _statistics(root: Path, version: str, stated: Stated | None) -> list[Finding]:
    if version == "v2.1":
        there = (root / "meta/episodes_stats.jsonl").is_file()
        return [] if there else [finding("LAKE-053", "no meta/episodes_stats.jsonl")]
    if stated is None:
        return [finding("LAKE-053", "no meta/stats.json")]
    without = [key for key in ("observation.state", "action") if key in stated and "count" not in stated[key]]
    return [finding("LAKE-051", ", ".join(without), file="meta/stats.json")] if without else []


def _numbers(listing: Listing) -> list[Finding]:
    numbers = sorted({listed.episode for listed in listing.episodes})
    odd = next((number for place, number in enumerate(numbers) if number != place), None)
    return [] if odd is None else [finding("LAKE-151", f"{odd} stands at place {numbers.index(odd)}")]


def _tasks(listing: Listing, version: str) -> list[Finding]:
    file = "meta/tasks.parquet" if version == "v3.0" else "meta/tasks.jsonl"
    used = {task for listed in listing.episodes for task in listed.tasks}
    unused = [text for text in listing.tasks.values() if text not in used] if used else []
    findings = [finding("LAKE-145", _some(unused), file=file)] if unused else []
    same: dict[str, list[int]] = {}
    for number, text in listing.tasks.items():
        same.setdefault(" ".join(text.casefold().split()).rstrip("."), []).append(number)
    twice = [f"{listing.tasks[numbers[0]]!r} is {numbers}" for numbers in same.values() if len(numbers) > 1]
    return findings + ([finding("LAKE-146", "; ".join(twice[:3]), file=file)] if twice else [])


def _some(texts: list[str]) -> str:
    shown = ", ".join(repr(text[:60]) for text in texts[:3])
    return f"{len(texts)}: {shown}" + (", …" if len(texts) > 3 else "")
