"""Declarations held against the numbers: what cannot be is found in the row where it is met first."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_lake.declared import SIZES, as_declared
from data_lake.schema import fixed
from data_lake.sources.episode import Episode
from data_lake.specs import PaddingSpec, ReadSpec, RotationSpec

FIRST = 2  # dim of the rotation


def axis_angles(seed: int, count: int = 6) -> np.ndarray:
    random = np.random.default_rng(seed)
    axes = random.normal(size=(count, 3))
    return axes / np.linalg.norm(axes, axis=1, keepdims=True) * random.uniform(0, np.pi, (count, 1))


def matrices(axis_angle_TK: np.ndarray) -> np.ndarray:
    """(T, 3, 3) by Rodrigues' formula."""
    angle = np.linalg.norm(axis_angle_TK, axis=1)[:, None, None]
    x, y, z = (axis_angle_TK / np.linalg.norm(axis_angle_TK, axis=1, keepdims=True)).T
    zero = np.zeros_like(x)
    cross = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def written(kind: str, axis_angle_TK: np.ndarray) -> np.ndarray:
    """The same rotations as a recorder of this kind writes them."""
    angle = np.linalg.norm(axis_angle_TK, axis=1, keepdims=True)
    imaginary, real = axis_angle_TK / angle * np.sin(angle / 2), np.cos(angle / 2)
    rotation = matrices(axis_angle_TK)
    return {
        "euler_xyz": np.stack(
            [
                np.arctan2(rotation[:, 2, 1], rotation[:, 2, 2]),
                np.arcsin(np.clip(-rotation[:, 2, 0], -1, 1)),
                np.arctan2(rotation[:, 1, 0], rotation[:, 0, 0]),
            ],
            axis=1,
        ),
        "axis_angle": axis_angle_TK,
        "quaternion_xyzw": np.concatenate([imaginary, real], axis=1),
        "quaternion_wxyz": np.concatenate([real, imaginary], axis=1),
        "rotation_6d": np.swapaxes(rotation[:, :, :2], 1, 2).reshape(-1, 6),
        "matrix": rotation.reshape(-1, 9),
    }[kind]


def found(values_TK: np.ndarray, **read: Any) -> list[tuple[str, int | None]]:
    state = np.concatenate([np.zeros((len(values_TK), FIRST)), values_TK], axis=1).astype(np.float32)
    rows = pa.table({"observation_state": fixed(state), "action": fixed(state)})
    kept, findings = as_declared(rows, ReadSpec(**read), Episode(source_episode=4, rows=None))
    assert kept.equals(rows) and all(item.episode == 4 for item in findings)
    return [(item.code, item.row) for item in findings]


def declared(kind: Any) -> tuple[RotationSpec, ...]:
    return (RotationSpec(column="state", first=FIRST, kind=kind),)


@pytest.mark.parametrize("kind", SIZES)
@given(seed=st.integers(0, 10_000))
def test_any_rotation_is_of_its_kind(kind: str, seed: int) -> None:
    values = written(kind, axis_angles(seed))
    assert values.shape[1] == SIZES[kind]
    assert found(values, rotations=declared(kind)) == []


@pytest.mark.parametrize("kind", SIZES)
def test_one_that_is_not_is_named_with_its_row(kind: str) -> None:
    values = written(kind, axis_angles(1))
    values[3] *= 180 / np.pi  # degrees, or no rotation at all
    assert found(values, rotations=declared(kind)) == [("LAKE-038", 3)]
    assert found(values[:, :2], rotations=declared(kind)) == [("LAKE-038", None)]


def test_padding_is_zero_throughout() -> None:
    values = np.zeros((5, 3))
    padding = (PaddingSpec(column="action", dims=(0, 3, 4)),)
    assert found(values, padding=padding) == []
    values[2, 1] = 0.5
    assert found(values, padding=padding) == [("LAKE-039", 2)]
    assert found(values, padding=(PaddingSpec(column="state", dims=(5,)),)) == [("LAKE-039", None)]
