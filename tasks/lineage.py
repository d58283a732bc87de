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
    """The same over records by the fingerprint of their ref; what has no record (a source) ends a branch.

    Of a mixture, the first component has the names of its stages; others have `ingest/9d02c1aa`, as `ls` shows them.
    """
    found: dict[str, Record] = {}
    for record in _inputs_first(known, fingerprints).values():
        stage = record["stage"]
        found[f"{stage}/{record['fingerprint'][:8]}" if stage in found else stage] = record
    return found


def _inputs_first(known: Mapping[str, Record], fingerprints: Iterable[str]) -> dict[str, Record]:
    """Records by fingerprint, each once and behind all that it was built from."""
    found: dict[str, Record] = {}
    for fingerprint in fingerprints:
        if (record := known.get(fingerprint)) is not None:
            found = {**found, **_inputs_first(known, record["identity"]["inputs"]), fingerprint: record}
    return found


def recipe_of(chain: Mapping[str, Record]) -> dict[str, Any]:
    """The sections of the recipe that identity is made of, merged over the stages of a lineage; those of a mixture's
    further components by the name of their stage."""
    merged: dict[str, Any] = {}
    for stage, record in chain.items():
        into = merged.setdefault(stage, {}) if "/" in stage else merged
        for section, value in record["identity"]["spec"].items():
            into[section] = {**into.get(section, {}), **value} if isinstance(value, dict) else value
    return merged
