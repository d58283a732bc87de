"""What an ingest left out of the lake, and why: told from its record, whenever somebody asks."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from data_lake.files import LakePath, read_bytes
from data_lake.refs import DatasetRef
from data_lake.store import records
from data_lake.tally import ranges
from data_lake.words import counted
from flows.screen import Screen

Json = Mapping[str, Any]
SHOWN = 40  # kinds of findings


def quarantined(lake: LakePath, record: Json) -> list[dict[str, Any]]:
    """Of an ingest's record, an object per episode with its findings; nothing for other stages."""
    if record["ref"]["type"] != DatasetRef.__name__:
        return []
    path = lake / record["ref"]["uri"] / "quarantine.json"
    return json.loads(read_bytes(path)) if path.is_file() else []


def sources_of(records: Iterable[Json]) -> list[str]:
    """Paths of all that came from outside the lake."""
    return list(dict.fromkeys(each["path"] for record in records for each in record["inputs"] if each.get("path")))


def ingests_of(lake: LakePath, dataset: str, version: int) -> list[dict[str, Any]]:
    """What came into the data set up to that version from outside the lake, oldest first."""
    return [
        {
            "slot": f"ingest/{record['fingerprint'][:8]}",
            "sources": sources,
            "finished": record["provenance"]["finished"],
            "num_quarantined": record["ref"]["num_quarantined"],
        }
        for record in records(lake, "ingest")
        if "revoked" not in record
        and record["ref"]["dataset"] == dataset
        and record["ref"]["version"] <= version
        and (sources := sources_of([record]))
    ]


def tell_ingested(episodes: Sequence[Json], record: Json, screen: Screen) -> None:
    """What an ingest kept out, told once per kind of finding with the first episode it is in, then what else it found
    that is worth knowing."""
    kinds: dict[tuple[str, str | None], list[tuple[Json, Json]]] = {}
    for each in episodes:
        for found in each["findings"]:
            kinds.setdefault((found["code"], found["camera"]), []).append((each, found))
    if episodes:
        sources = ", ".join(sources_of([record]))
        screen.line(f"in quarantine: {counted(len(episodes), 'episode')} of {sources}")
    for told in list(kinds.values())[:SHOWN]:
        _tell(told, screen)
    if len(kinds) > SHOWN:
        screen.line(f"  … and {len(kinds) - SHOWN} more (--json has all)")
    is_ingest = record["ref"]["type"] == DatasetRef.__name__ and record["stage"] == "ingest"
    others = [each for each in record["summary"]["table"] if each["severity"] != "error"] if is_ingest else []
    if others:
        screen.line("found beside")
        for found in others:
            screen.line(f"  {found['severity']:<8} {found['code']} {found['message']}")


def _tell(told: Sequence[tuple[Json, Json]], screen: Screen) -> None:
    (first, found), numbers = told[0], sorted({each["episode"] for each, _ in told})
    names = ("camera", "row", "file")
    place = " · ".join(f"{name} {found[name]}" for name in names if found[name] not in (None, first["file"]))
    more = f" (and {counted(len(numbers) - 1, 'more episode')})" if len(numbers) > 1 else ""
    screen.line(f"  episode {first['episode']} · {first['file']}{more}")
    screen.line(f"    {found['code']} {place + ': ' if place else ''}{found['message']}")
    if more:
        screen.line(f"    episodes {ranges(np.array(numbers))}")
    screen.line(f"    next: {found['fix']}")
