"""Items of LeRobot's readers beside one another, key by key; for the scripts of this folder."""

import time
from collections.abc import Sequence
from typing import Any

import torch

Items = Sequence[dict[str, Any]]


def compare(source: Items, other: Items, every: int = 1) -> dict[str, Any]:
    """Every item of both, or every n-th. unlike: key to how many items differ in it."""
    begin = time.perf_counter()
    unlike: dict[str, int] = {}
    mine, theirs = set(source[0]), set(other[0])
    for number in range(0, len(source), every):
        one, two = source[number], other[number]
        for key in mine & theirs:
            expected, found = one[key], two[key]
            same = torch.equal(expected, found) if torch.is_tensor(expected) else expected == found
            unlike[key] = unlike.get(key, 0) + (not same)
    return {
        "items": len(source),
        "items_there": len(other),
        "equal_keys": sorted(key for key, count in unlike.items() if not count),
        "unlike": {key: count for key, count in sorted(unlike.items()) if count},
        "absent": sorted(mine - theirs),
        "more": sorted(theirs - mine),
        "seconds": round(time.perf_counter() - begin, 2),
    }
