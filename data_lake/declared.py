"""What a recipe declares of a source's numbers (grippers, rotations, padding), held against its rows.

A declaration that the numbers contradict would be believed by all that follows, so it is found here.
"""

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
        found += _named(episode, "LAKE-038", _no_rotation(rows, rotation))
    for padding in read.padding:
        found += _named(episode, "LAKE-039", _no_padding(rows, padding))
    return rows, found


Odd = tuple[int | None, str] | None
"""The first row that contradicts a declaration (None: all of them), and how; None where nothing does."""


def _named(episode: Episode, code: str, odd: Odd) -> list[Finding]:
    if odd is None:
        return []
    row, detail = odd
    return [finding(code, detail, row=row, episode=episode.source_episode, file=episode.file)]


def _no_rotation(rows: pa.Table, rotation: RotationSpec) -> Odd:
    rows_TD = vectors(rows[COLUMNS[rotation.column]])
    end = rotation.first + SIZES[rotation.kind]
    shown = f"{rotation.column}[{rotation.first}:{end}] as {rotation.kind}"
    if rows_TD is None or end > rows_TD.shape[1]:
        return None, f"there is no {shown}"
    values_TK = rows_TD[:, rotation.first : end].astype(np.float64)
    if rotation.kind in ("euler_xyz", "axis_angle"):
        wrong_T = np.abs(values_TK).max(axis=1) > FULL_TURN
    else:
        width = 4 if rotation.kind.startswith("quaternion") else 3
        lengths_TN = np.linalg.norm(values_TK.reshape(len(values_TK), -1, width), axis=2)
        wrong_T = (np.abs(lengths_TN - 1) > UNIT_SLACK).any(axis=1)
    if not wrong_T.any():
        return None
    row = int(np.argmax(wrong_T))
    return row, f"{shown} is {np.array2string(values_TK[row], precision=3)} in row {row}"


def _no_padding(rows: pa.Table, padding: PaddingSpec) -> Odd:
    rows_TD = vectors(rows[COLUMNS[padding.column]])
    for dim in padding.dims:
        if rows_TD is None or dim >= rows_TD.shape[1]:
            return None, f"there is no {padding.column}[{dim}]"
        if (rows_TD[:, dim] != 0).any():
            row = int(np.argmax(rows_TD[:, dim] != 0))
            return row, f"{padding.column}[{dim}] is {rows_TD[row, dim]:g} in row {row}"
    return None
