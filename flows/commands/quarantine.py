"""What an ingest left out of the lake, and why: told from its record, whenever somebody asks."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from data_lake.files import LakePath, read_bytes
from data_lake.refs import DatasetRef
from flows.screen import Screen

Json = Mapping[str, Any]
SHOWN = 40  # episodes


def quarantined(lake: LakePath, record: Json) -> list[dict[str, Any]]:
    """Of an ingest's record, an object per episode with its findings; nothing for other stages."""
    if record["ref"]["type"] != DatasetRef.__name__:
        return []
    path = lake / record["ref"]["uri"] / "quarantine.json"
    return json.loads(read_bytes(path)) if path.is_file() else []


def tell_quarantined(
    episodes: Sequence[Mapping[str, Any]], inputs: Sequence[Mapping[str, Any]], screen: Screen
) -> None:
    """Per episode its file; per finding its code, place, message, and what to do about it. inputs: of the record; they
    name the source."""
    if episodes:
        sources = ", ".join(each.get("path") or each["uri"] for each in inputs)
        screen.line(f"in quarantine, of {sources}")
    for each in episodes[:SHOWN]:
        screen.line(f"  episode {each['episode']} · {each['file']}")
        for found in each["findings"]:
            names = ("camera", "row", "file")
            place = " · ".join(f"{name} {found[name]}" for name in names if found[name] not in (None, each["file"]))
            screen.line(f"    {found['code']} {place + ': ' if place else ''}{found['message']}")
            screen.line(f"    next: {found['fix']}")
    if len(episodes) > SHOWN:
        screen.line(f"  … and {len(episodes) - SHOWN} more (--json has all)")
