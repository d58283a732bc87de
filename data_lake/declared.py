"""What a recipe declares of a source's numbers (grippers, rotations, padding), held against its rows.

A declaration that the numbers contradict would be believed by all that follows, so it is found here.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from data_lake.findings import Finding, finding
from data_lake.grippers import COLUMNS, with_open_as_one
from data_lake.schema import vectors
from data_lake.sources.episode import Episode
from data_lake.specs import PaddingSpec, ReadSpec, RotationSpec

SIZES = {"euler_xyz": 3, "axis_angle": 3, "quaternion_xyzw": 4, "quaternion_wxyz": 4, "rotation_6d": 6, "matrix": 9}
FULL_TURN = 2 * np.pi + 0.01
UNIT_SLACK = 0.05  # how far from 1 a length may be that should be 1: sensors round


def as_declared(rows: pa.Table, read: ReadSpec, episode: Episode) -> tuple[pa.Table, list[Finding]]:
    """Canonical `rows` with grippers as the lake has them, and what contradicts a declaration: LAKE-055 and -056 of
    grippers, LAKE-038 of rotations, LAKE-039 of padding."""
    rows, found = with_open_as_one(rows, read.grippers, episode)
    for rotation in read.rotations:
        found += _named(episode, "LAKE-038", _rotation(rows, rotation))
    for padding in read.padding:
        found += _named(episode, "LAKE-039", _padding(rows, padding))
    return rows, found


def _named(episode: Episode, code: str, odd: Iterator[tuple[int | None, str]]) -> list[Finding]:
    """One finding, about the first row."""
    where = {"episode": episode.source_episode, "file": episode.file}
    return [finding(code, detail, row=row, **where) for row, detail in odd][:1]


def _rotation(rows: pa.Table, rotation: RotationSpec) -> Iterator[tuple[int | None, str]]:
    rows_TD = vectors(rows[COLUMNS[rotation.column]])
    end = rotation.first + SIZES[rotation.kind]
    shown = f"{rotation.column}[{rotation.first}:{end}] as {rotation.kind}"
    if rows_TD is None or end > rows_TD.shape[1]:
        yield None, f"there is no {shown}"
        return
    values_TK = rows_TD[:, rotation.first : end].astype(np.float64)
    wrong_T = ~np.isfinite(values_TK).all(axis=1)
    if rotation.kind in ("euler_xyz", "axis_angle"):
        wrong_T |= np.abs(values_TK).max(axis=1) > FULL_TURN
    else:
        width = 4 if rotation.kind.startswith("quaternion") else 3
        lengths_TN = np.linalg.norm(values_TK.reshape(len(values_TK), -1, width), axis=2)
        wrong_T |= (np.abs(lengths_TN - 1) > UNIT_SLACK).any(axis=1)
    if wrong_T.any():
        row = int(np.argmax(wrong_T))
        yield row, f"{shown} is {np.array2string(values_TK[row], precision=3)} in row {row}"


def _padding(rows: pa.Table, padding: PaddingSpec) -> Iterator[tuple[int | None, str]]:
    rows_TD = vectors(rows[COLUMNS[padding.column]])
    for dim in padding.dims:
        if rows_TD is None or dim >= rows_TD.shape[1]:
            yield None, f"there is no {padding.column}[{dim}]"
        elif (rows_TD[:, dim] != 0).any():
            row = int(np.argmax(rows_TD[:, dim] != 0))
            yield row, f"{padding.column}[{dim}] is {rows_TD[row, dim]:g} in row {row}"
