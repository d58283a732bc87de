"""Whether what an ingest recorded holds today: its data set may be gone, and what could not be read then may be
readable by now."""

import json
from collections.abc import Mapping
from typing import Any

from data_lake.files import LakePath, read_bytes
from data_lake.refs import DatasetRef, Ref, from_json
from errors import UserError

Record = Mapping[str, Any]
SHOWN = 3  # episodes that are named


def lost(lake: LakePath, record: Record) -> str:
    """Why the data set does not hold what the record says; empty where it does, and for what is no ingest's record.

    Tables that are damaged are not lost: whoever reads them says so, and how to mend them.
    """
    ref = _ingested(record)
    if ref is None:
        return ""
    from data_lake.tables import dataset_root, versions  # these load Lance, which other stages' records do not need
    from data_lake.version import open_version
    from data_lake.view import read_view

    named = f"{ref.dataset}@{ref.version}"
    if ref.version not in versions(dataset_root(lake, ref.dataset)):
        return f"the lake has no {named} any more"
    try:
        rows = open_version(lake, named).episode_rows
        entries = read_view(lake / ref.uri).episodes
    except (UserError, FileNotFoundError):
        return ""
    held = rows["content_hash"].to_pylist()
    same = all(entry.episode_index < len(held) and held[entry.episode_index] == entry.content_hash for entry in entries)
    return "" if same else f"{named} holds other episodes now"


def unread(lake: LakePath, record: Record) -> str:
    """Which episodes could not be read then, though the disk, the network or the machine may have been to blame; empty
    where there are none."""
    ref = _ingested(record)
    path = lake / ref.uri / "quarantine.json" if ref is not None and ref.num_quarantined else None
    if path is None or not path.is_file():
        return ""
    passing = [each for each in json.loads(read_bytes(path)) if not each.get("lasting", True)]
    if not passing:
        return ""
    named = ", ".join(f"{each['episode']}{_codes(each)}" for each in passing[:SHOWN])
    more = f" and {len(passing) - SHOWN} more" if len(passing) > SHOWN else ""
    return f"looked at again: episode {named}{more} could not be read"


def _codes(episode: Mapping[str, Any]) -> str:
    codes = dict.fromkeys(item["code"] for item in episode["findings"] if item["severity"] == "error")
    return f" ({', '.join(codes)})" if codes else ""


def _ingested(record: Record) -> DatasetRef | None:
    ref: Ref = from_json(record["ref"])
    return ref if isinstance(ref, DatasetRef) else None
