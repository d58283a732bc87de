"""How rows lie in the lake: LeRobot's Lance layout, one canonical form whatever the source wrote.

Dots become underscores, vectors of floats fixed-size lists of float32; `frame_index` counts rows and
`timestamp` is frame_index / fps, so that row i belongs to video frame i.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from data_lake.sources.episode import Episode, Feature

STATE, ACTION = "observation_state", "action"
PLACE = ("timestamp", "frame_index", "episode_index", "index", "task_index")  # what the lake numbers itself
FILE_FORMAT = "2.2"  # blob v2 needs it

VIDEOS = pa.schema(
    [
        pa.field("video_key", pa.string()),
        pa.field("chunk_index", pa.int64()),
        pa.field("file_index", pa.int64()),
        pa.field("file_size", pa.int64()),
        pa.field("moov_offset", pa.int64()),
        pa.field("moov_size", pa.int64()),
        pa.field("kf_indices", pa.list_(pa.int64())),
        pa.field("kf_positions", pa.list_(pa.int64())),
        pa.field("blake3", pa.string()),
        lance.blob_field("video_bytes"),
    ]
)
META = pa.schema([pa.field("path", pa.string()), pa.field("data", pa.large_binary())])


def meta_rows(files: Mapping[str, bytes]) -> pa.Table:
    """The `meta` table: a row per file of LeRobot's meta/, by its path below it."""
    return pa.table({"path": list(files), "data": pa.array(list(files.values()), pa.large_binary())}, schema=META)


def lake_name(name: str) -> str:
    return name.replace(".", "_")


def is_kept(name: str) -> bool:
    """Whether a column of this name comes into the lake: the lake numbers its rows itself, and annotation indices point
    into the source's task list (`task` holds their words)."""
    return name not in PLACE and not name.startswith("annotation.")


def is_vector(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def vectors(column: pa.ChunkedArray) -> np.ndarray | None:
    """A column of numbers as (T, D); a scalar column has D = 1. None when rows have nulls or differ in width."""
    if column.null_count:
        return None
    kind = column.type
    if not is_vector(kind):
        return column.to_numpy().reshape(-1, 1) if is_number(kind) else None
    if not is_number(kind.value_type):
        return None
    array = column.combine_chunks()
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    values = array.flatten()
    if values.null_count or not len(array) or len(values) % len(array):
        return None
    if not pa.types.is_fixed_size_list(kind) and len(array.value_lengths().unique()) > 1:
        return None
    return values.to_numpy(zero_copy_only=False).reshape(len(array), -1)


def is_listed(name: str, kind: pa.DataType) -> bool:
    """Whether the lake keeps a column of this name and type as fixed-size lists."""
    return is_vector(kind) or lake_name(name) in (STATE, ACTION)


def in_lists(rows_TD: np.ndarray) -> np.ndarray:
    """(T, D) as lists hold them: floats become float32, and those beyond its range infinite."""
    if rows_TD.dtype.kind != "f":
        return rows_TD
    with np.errstate(over="ignore"):  # the checks say so
        return rows_TD.astype(np.float32)


def fixed(rows_TD: np.ndarray) -> pa.FixedSizeListArray:
    """(T, D) as a column of fixed-size lists."""
    rows_TD = in_lists(rows_TD)
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(rows_TD).reshape(-1)), rows_TD.shape[1])


def canonical(rows: pa.Table) -> pa.Table:
    """Rows under lake names, those that are kept (see `is_kept`). Expects rows that passed the checks."""
    columns: dict[str, Any] = {}
    for name in filter(is_kept, sorted(rows.column_names)):
        column = rows[name]
        if is_listed(name, column.type):
            rows_TD = vectors(column)
            if rows_TD is None:
                continue
            columns[lake_name(name)] = fixed(rows_TD)
        elif is_number(column.type) or name == "task":
            columns[lake_name(name)] = column.combine_chunks()
    return pa.table(columns)


def rows_digest(rows: pa.Table, fps: float) -> str:
    """SHA-256 over canonical rows: names, types and values, whatever their chunks and offsets."""
    digest = hashlib.sha256(f"{rows.num_rows} rows at {fps!r} Hz".encode())
    for name in sorted(rows.column_names):
        column = rows[name].combine_chunks()
        digest.update(f"\n{name} {column.type}\n".encode())
        if pa.types.is_string(column.type):
            codes = column.dictionary_encode()
            digest.update("\0".join(codes.dictionary.to_pylist()).encode())
            column = codes.indices
        values = vectors(pa.chunked_array([column]))
        if values is not None:
            digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def frames_of(rows: pa.Table, *, fps: float, episode: int, first_index: int, tasks: dict[str, int]) -> pa.Table:
    """Rows of the `frames` table: canonical rows with the numbers that the lake gives them."""
    count = rows.num_rows
    frame = np.arange(count, dtype=np.int64)
    texts = rows["task"].combine_chunks().dictionary_encode()
    numbers = pa.array([tasks[text] for text in texts.dictionary.to_pylist()], pa.int64())
    numbered = {
        "timestamp": pa.array((frame / fps).astype(np.float32)),
        "frame_index": pa.array(frame),
        "episode_index": pa.array(np.full(count, episode, np.int64)),
        "index": pa.array(first_index + frame),
        "task_index": numbers.take(texts.indices),
    }
    kept = {name: rows[name] for name in rows.column_names if name != "task"}
    return pa.table({**kept, **numbered})


def dotted_names(episode: Episode, features: Mapping[str, Feature]) -> dict[str, Any]:
    """For `features_of`: of the columns of a source's episode, as its card declares them."""
    assert episode.rows is not None
    names = {name: features[name].names if name in features else None for name in episode.rows.column_names}
    return {lake_name(name): (name, dimensions) for name, dimensions in names.items()}


def features_of(frames: pa.Schema, names: dict[str, Any]) -> dict[str, Any]:
    """LeRobot's `features` of info.json for the tabular columns, under their dotted names. `names`: lake name →
    (dotted name, names of the dimensions)."""
    features = {}
    for column in frames:
        dotted, dimensions = names.get(column.name, (column.name, None))
        vector = pa.types.is_fixed_size_list(column.type)
        kind = column.type.value_type if vector else column.type
        features[dotted] = {
            "dtype": {"float": "float32", "double": "float64"}.get(str(kind), str(kind)),
            "shape": [column.type.list_size if vector else 1],
            "names": dimensions,
        }
    return features


def dimension_names(names: Any, count: int) -> tuple[str, ...]:
    """Names of `count` dimensions from what a feature declares: a list, a list in a list, or groups by name; ""
    for those that have none."""
    while isinstance(names, list | tuple) and len(names) == 1 and isinstance(names[0], list | tuple):
        names = names[0]
    if isinstance(names, Mapping):
        names = [name for each in names.values() for name in (each if isinstance(each, list) else [each])]
    known = names if isinstance(names, list | tuple) else []
    return tuple(str(known[number]) if number < len(known) else "" for number in range(count))
