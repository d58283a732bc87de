"""Whether data sets mean the same: columns, cameras, rate, robot and what was declared, never how it is written."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from data_lake.meaning import MEANT, MEANT_WHERE_SAID, meant, shared_meaning
from data_lake.schema import dimension_names
from data_lake.version import DatasetVersion
from errors import UserError

Said = tuple[str, Any, Any]
"""What is said of a thing, here and there."""


def ensure_alike(versions: Sequence[DatasetVersion]) -> None:
    """Raises UserError LAKE-180 with every difference between the first version and each other one."""
    found = [text for other in versions[1:] for text in differences(versions[0], other)]
    if found:
        raise UserError(
            "LAKE-180",
            f"the data sets do not mean the same: {'; '.join(found)}",
            where=", ".join(version.name for version in versions),
            done="nothing was merged",
            next_step="keep them apart, or ingest the sources of one again so that they fit",
        )


def differences(one: DatasetVersion, other: DatasetVersion) -> Iterator[str]:
    """What the two mean differently, each as a few words. A camera may be absent from one of them, as from episodes of
    a data set; what only describes (codec, `info`, `video_info`) may differ, and names may be given by one alone."""
    meanings = [meant(shared_meaning(each.root.name, each.episodes)) for each in (one, other)]
    said: list[Said] = [(name, meanings[0].get(name), meanings[1].get(name)) for name in (*MEANT, *MEANT_WHERE_SAID)]
    said.append(("embodiment", one.info["vlaloop"].get("embodiment"), other.info["vlaloop"].get("embodiment")))
    for key in sorted({*one.columns, *other.columns}):
        here, there = one.columns.get(key), other.columns.get(key)
        if here is None or there is None:
            said.append((key, _presence(here), _presence(there)))
        else:
            said += _of_feature(key, here, there)
    for key in sorted({*one.cameras} & {*other.cameras}):
        said.append((f"{key} shape", one.info["features"][key]["shape"], other.info["features"][key]["shape"]))
    for name, here, there in said:
        if here != there:
            yield f"{name} ({_shown(here)} in {one.name}, {_shown(there)} in {other.name})"


def _of_feature(key: str, here: Mapping[str, Any], there: Mapping[str, Any]) -> Iterator[Said]:
    for name in ("dtype", "shape"):
        yield f"{key} {name}", here[name], there[name]
    names, others = (
        [name for name in dimension_names(each.get("names"), math.prod(each["shape"])) if name]
        for each in (here, there)
    )
    if names and others:
        yield f"{key} names", names, others


def _presence(feature: Mapping[str, Any] | None) -> str:
    return "absent" if feature is None else "present"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def features_together(versions: Sequence[DatasetVersion]) -> dict[str, Any]:
    """Every feature with every field that one of them has; the first that says something of it is believed."""
    together: dict[str, dict[str, Any]] = {}
    for version in versions:
        for key, feature in version.info["features"].items():
            held = together.setdefault(key, {})
            held |= {name: value for name, value in feature.items() if held.get(name) is None}
    return together
