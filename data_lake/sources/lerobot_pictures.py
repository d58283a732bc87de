"""Cameras of LeRobot's dtype `image`: encoded pictures among the rows, a struct of `bytes` and `path` per frame.

As Hugging Face's `datasets.Image` stores them, and LeRobot's own writer where it makes no videos.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from data_lake.findings import Finding, finding
from data_lake.sources.episode import Pictures
from data_lake.sources.files import Unreadable
from data_lake.sources.listing import cameras_of
from data_lake.sources.stills import decoded


def declared_pictures(features: Mapping[str, Any]) -> tuple[tuple[str, ...], list[Finding]]:
    """Keys of the declared cameras of dtype `image`, and LAKE-115 for those that are not of three channels (depth)."""
    keys = cameras_of(features, "image")
    shapes = {key: tuple(features[key].get("shape") or (3,)) for key in keys}
    odd = [key for key in keys if 3 not in (shapes[key][0], shapes[key][-1])]
    findings = [finding("LAKE-115", f"{key} is declared {shapes[key]}", camera=key) for key in odd]
    return tuple(key for key in keys if key not in odd), findings


def holds_pictures(kind: pa.DataType) -> bool:
    names = [kind.field(place).name for place in range(kind.num_fields)] if pa.types.is_struct(kind) else []
    return "bytes" in names and pa.types.is_binary(kind.field("bytes").type)


def pictures_apart(
    table: pa.Table, declared: Collection[str], *, believed: bool, path: Path
) -> tuple[pa.Table, dict[str, Pictures], list[str]]:
    """The rows without their pictures, the pictures by camera, and the declared cameras that have none.

    declared: cameras of dtype `image`. believed: whether nothing else is one (False: features are not declared, and a
    column that holds pictures is a camera). The encoded pictures of the episode stay in memory with what is returned.
    Raises Unreadable LAKE-019 for a camera's column of another form.
    """
    there = [name for name in table.column_names if name in declared]
    if not believed:
        there += [name for name in table.column_names if holds_pictures(table[name].type) and name not in there]
    if odd := next((name for name in there if not holds_pictures(table[name].type)), None):
        raise Unreadable("LAKE-019", f"{odd} is {table[odd].type}, declared image (a struct of bytes and path)")
    pictures = {name: Pictures(path=path, frames=partial(_frames, table[name])) for name in there}
    return table.drop_columns(there), pictures, [key for key in declared if key not in there]


def _frames(column: pa.ChunkedArray) -> Iterator[np.ndarray]:
    for number, stored in enumerate(column):
        content = stored["bytes"].as_py() if stored.is_valid else None
        if content is None:
            named = stored["path"].as_py() if stored.is_valid and "path" in stored else None
            raise Unreadable(
                "LAKE-031", f"frame {number} has no bytes" + (f", only the path {named!r}" if named else "")
            )
        yield decoded(content, f"frame {number}")
