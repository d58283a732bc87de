"""Identity: the canonical form of a spec and its fingerprint, the same in every interpreter and release."""

import dataclasses
import hashlib
import json
import math
from typing import Any

FINGERPRINT_LENGTH = 16  # hex digits: 64 bits, ample for the slots of one lake


def canonical(value: Any) -> Any:
    """The JSON form of `value` that identity is made of.

    Fields marked `label` are left out, and so are fields marked `neutral` while at their default. Dicts are
    sorted, tuples become lists, -0.0 becomes 0.0. Raises TypeError for anything without one stable form
    (callables, sets, paths, non-finite floats).
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kept = [field for field in dataclasses.fields(value) if _bears_identity(field, getattr(value, field.name))]
        return {field.name: canonical(getattr(value, field.name)) for field in kept}
    if isinstance(value, list | tuple):
        return [canonical(item) for item in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("a dict with keys other than strings has no stable fingerprint")
        return {key: canonical(value[key]) for key in sorted(value)}
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TypeError(f"{value} has no stable fingerprint")
        return value + 0.0
    if value is None or type(value) in (bool, int, str):
        return value
    raise TypeError(f"{type(value).__name__} has no stable fingerprint; use a dataclass, a tuple or a string")


def _bears_identity(field: dataclasses.Field[Any], value: Any) -> bool:
    if field.metadata.get("label", False):
        return False
    return not (field.metadata.get("neutral", False) and value == field.default)


def dumps(value: Any) -> str:
    """Canonical JSON text: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def fingerprint(value: Any) -> str:
    """Hex digest of the canonical form of `value`."""
    return hashlib.sha256(dumps(canonical(value)).encode()).hexdigest()[:FINGERPRINT_LENGTH]


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Leaves of a canonical value by dotted path: {"policy.action_horizon": 16}."""
    if isinstance(value, dict) and value:
        pairs = list(value.items())
    elif isinstance(value, list) and value:
        pairs = [(str(index), item) for index, item in enumerate(value)]
    else:
        return {prefix: value}
    return {path: leaf for key, sub in pairs for path, leaf in flat(sub, f"{prefix}.{key}" if prefix else key).items()}


def differences(old: Any, new: Any) -> list[str]:
    """Changed leaves of two canonical values, as `policy.action_horizon: 8 -> 16`."""
    before, after = flat(old), flat(new)
    pairs = [(path, _shown(before, path), _shown(after, path)) for path in sorted(before | after)]
    return [f"{path}: {was} -> {is_now}" for path, was, is_now in pairs if was != is_now]


def _shown(leaves: dict[str, Any], path: str) -> str:
    """The leaf as JSON, so that 1, 1.0 and true differ as their fingerprints do."""
    return json.dumps(leaves[path], ensure_ascii=False) if path in leaves else "(absent)"
