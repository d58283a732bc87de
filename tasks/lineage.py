"""Walks records upstream: from a ref to everything that it was made of, and to the settings that made it."""

from collections.abc import Iterable, Mapping
from typing import Any

from data_lake.files import LakePath
from data_lake.refs import Ref
from data_lake.store import records

Record = Mapping[str, Any]


def lineage(lake: LakePath, refs: Iterable[Ref]) -> dict[str, Record]:
    """Records of `refs` and of all they were built from, by stage, in the order of the loop."""
    known = {record["ref"]["fingerprint"]: record for record in records(lake)}
    return upstream(known, [ref.fingerprint for ref in refs])


def upstream(known: Mapping[str, Record], fingerprints: Iterable[str]) -> dict[str, Record]:
    """The same over records by the fingerprint of their ref; what has no record (a source) ends a branch."""
    found: dict[str, Record] = {}
    for fingerprint in fingerprints:
        record = known.get(fingerprint)
        if record is not None and record["stage"] not in found:
            found = {**upstream(known, record["identity"]["inputs"]), **found}
            found[record["stage"]] = record
    return found


def recipe_of(chain: Mapping[str, Record]) -> dict[str, Any]:
    """The sections of the recipe that identity is made of, merged over the stages of a lineage."""
    merged: dict[str, Any] = {}
    for record in chain.values():
        for section, value in record["identity"]["spec"].items():
            merged[section] = {**merged.get(section, {}), **value} if isinstance(value, dict) else value
    return merged
