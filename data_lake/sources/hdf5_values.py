"""What one HDF5 demonstration holds: its numbers, its words, its pictures."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from data_lake.sources.files import Unreadable
from data_lake.sources.hdf5_layout import item_at, opened


def read_numbers(demo: h5py.Group, paths: Sequence[str]) -> dict[str, np.ndarray]:
    """(T, D) float32 by path inside the demonstration. Raises Unreadable LAKE-108 for a path that is not there,
    LAKE-109 for what is no table of numbers, LAKE-102 where the lengths differ."""
    tables = {path: _table(demo, path) for path in paths}
    if len({len(table) for table in tables.values()}) > 1:  # before any is read: a length may be absurd
        raise Unreadable("LAKE-102", ", ".join(f"{path} has {len(table)}" for path, table in tables.items()))
    return {path: _floats(table) for path, table in tables.items()}


def _table(demo: h5py.Group, path: str) -> h5py.Dataset:
    values = None if path.startswith("/") else item_at(demo, path)  # that would be one demonstration's for all
    if not isinstance(values, h5py.Dataset):
        raise Unreadable("LAKE-108", path)
    if values.dtype.kind not in "fiub" or values.ndim not in (1, 2) or 0 in values.shape[1:]:
        raise Unreadable("LAKE-109", f"{path} is {values.dtype} {values.shape}")
    return values


def _floats(values: h5py.Dataset) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):  # what float32 cannot hold is infinite, and found as such
        rows = np.asarray(values).astype(np.float32)
    return rows if rows.ndim == 2 else rows[:, np.newaxis]


def read_words(owners: Sequence[h5py.Group], path: str) -> str:
    """The text after "=", or what a data set or attribute at `path` says, of the first owner that has it.

    Empty where none has. Raises Unreadable LAKE-107 for what is no single text.
    """
    if path.startswith("="):
        return path[1:]
    said = next((value for owner in owners if (value := _value(owner, path)) is not None), "")
    distinct = set(np.ravel(said).tolist())
    if len(distinct) != 1:
        raise Unreadable("LAKE-107", f"{path} holds {len(distinct)} of them")
    (text,) = distinct
    text = text.decode() if isinstance(text, bytes) else text
    if not isinstance(text, str):
        raise Unreadable("LAKE-107", f"{path} is {text!r}"[:200])
    return text.strip()


def _value(owner: h5py.Group, path: str) -> Any:
    found = item_at(owner, path)
    if isinstance(found, h5py.Dataset):
        return found[()]
    folder, _, name = path.rpartition("/")
    holder = item_at(owner, folder) if folder else owner
    return holder.attrs.get(name) if holder is not None else None


def read_pictures(file: Path, path: str) -> Iterator[np.ndarray]:
    """The (H, W, 3) frames of a data set, read a chunk at a time. Raises Unreadable LAKE-031, LAKE-100."""
    with opened(file) as root:
        pictures = item_at(root, path)
        if not isinstance(pictures, h5py.Dataset) or not pictures.ndim:
            raise Unreadable("LAKE-031", f"there is no {path}")
        step = pictures.chunks[0] if pictures.chunks else 1
        for start in range(0, len(pictures), step):
            yield from pictures[start : start + step]
