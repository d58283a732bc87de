"""What a LeRobot folder's metadata list: episodes, tasks and cameras, whichever version wrote them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from data_lake.findings import Finding
from data_lake.sources.episode import Part, VideoSpan

_FIELD = re.compile(r"\{(\w+)(?::0?(\d)d)?\}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """One episode as the metadata list it. data None: its file is nowhere."""

    episode: int
    length: int | None
    tasks: tuple[str, ...]
    data: Path | None
    views: Mapping[str, VideoSpan]
    extra: Mapping[str, Any] = field(default_factory=dict)
    statistics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """episodes: in order of their numbers. tasks: index to text. cameras: those that have files. wordless: index to
    what is listed in place of a text."""

    episodes: tuple[Listed, ...]
    tasks: Mapping[int, str]
    cameras: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    wordless: Mapping[int, str] = field(default_factory=dict)


def parts_of(listing: Listing, root: Path) -> list[tuple[Part, list[list[Listed]]]]:
    """Neighbours whose rows are in one file are a part; of an episode, what is listed of it (once, if all is well)."""
    by_number: dict[int, list[Listed]] = {}
    for listed in listing.episodes:
        by_number.setdefault(listed.episode, []).append(listed)
    found: list[tuple[Part, list[list[Listed]]]] = []
    for data, group in groupby(by_number.values(), key=lambda several: several[0].data):
        listings = list(group)
        every = [listed for several in listings for listed in several]
        videos = {span.path for listed in every for span in listed.views.values()}
        files = (*((data,) if data else ()), *sorted(videos))
        found.append((Part(files=files, said=repr(every).replace(str(root), "")), listings))
    return found


def fill(template: str, values: Mapping[str, int | str]) -> str | None:
    """`template` with its `{name}` and `{name:03d}` fields filled; None when it asks for anything else.

    Not `str.format`: the template comes from a file.
    """
    if any(name not in values for name, _ in _FIELD.findall(template)):
        return None

    def put(match: re.Match[str]) -> str:
        value = values[match[1]]
        return f"{value:0{match[2]}d}" if match[2] and isinstance(value, int) else str(value)

    filled = _FIELD.sub(put, template)
    return None if "{" in filled or ".." in filled.split("/") or filled.startswith("/") else filled


def why_left_out(key: str) -> str:
    """Of a camera that has no files, for people."""
    odd = ", whose `/` makes folders within folders of it: name it without one, in meta/info.json and among the videos"
    return key + odd * ("/" in key)


def cameras_of(features: Mapping[str, Any], dtype: str) -> tuple[str, ...]:
    """Keys of the declared cameras of `dtype` (`video` or `image`)."""
    return tuple(key for key, feature in features.items() if feature.get("dtype") == dtype)
