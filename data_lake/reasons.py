"""Why a slot is not finished, in a few words for people: what differs from the finished one most like it."""

from typing import Any

from data_lake import identity
from data_lake.store import Slot, records


def reasons(slot: Slot, label: str) -> list[str]:
    """Why `slot` is not finished: what differs from the most similar finished one with the same label, the newest
    of several."""
    siblings = [record for record in records(slot.lake, slot.stage) if record["label"] == label]
    if not siblings:
        return ["first build"]
    revoked = _revocation(siblings, slot.identity)
    said = [f"revoked: {revoked}"] if revoked else []
    found = min((_differences(record["identity"], slot.identity) for record in reversed(siblings)), key=len)
    return [*said, *found] or ["unfinished"]


def _differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    found = identity.differences(old["spec"], new["spec"])
    if old["version"] != new["version"]:
        found.append(f"version {old['version']} -> {new['version']}")
    return [*found, "upstream"] if old["inputs"] != new["inputs"] else found


def _revocation(siblings: list[dict[str, Any]], new: dict[str, Any]) -> str:
    """Why the record that `new` replaces was revoked, if it replaces one."""
    for record in reversed(siblings):
        same = all(record["identity"][key] == new[key] for key in ("spec", "version", "inputs"))
        if (
            same
            and "revoked" in record
            and len(new.get("revoked", [])) == len(record["identity"].get("revoked", [])) + 1
        ):
            return record["revoked"]["why"]
    return ""
