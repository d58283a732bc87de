"""Grippers: 1 is open whatever a source wrote; what cannot be is named."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_lake.grippers import with_open_as_one
from data_lake.schema import fixed, vectors
from data_lake.sources.episode import Episode
from data_lake.specs import GripperSpec

MOTION = np.array([0, 0, 0.25, 0.5, 1, 1, 1, 0.5, 0, 0])  # of the gripper: 1 is open


def rows(gripper_T: np.ndarray) -> pa.Table:
    rows_TD = np.stack([np.arange(len(gripper_T)), gripper_T], axis=1).astype(np.float32)
    return pa.table({"action": fixed(rows_TD), "observation_state": fixed(rows_TD)})


def mapped(gripper_T: np.ndarray, spec: GripperSpec) -> tuple[np.ndarray, list[str]]:
    table, found = with_open_as_one(rows(gripper_T), (spec,), Episode(source_episode=3, rows=None))
    action_TD = vectors(table["action"])
    assert action_TD is not None
    return action_TD[:, 1], [item.code for item in found]


@given(st.floats(-5, 5), st.floats(-5, 5))
def test_one_motion_is_one_whatever_the_convention(opened: float, closed: float) -> None:
    if abs(opened - closed) < 0.01:
        return
    spec = GripperSpec(column="action", dim=1, open=opened, closed=closed)
    openness_T, codes = mapped(closed + MOTION * (opened - closed), spec)
    assert codes == [] and np.allclose(openness_T, MOTION, atol=1e-3)


def test_only_the_declared_dimension_changes() -> None:
    spec = GripperSpec(column="action", dim=1, open=0.0, closed=1.0)
    table, _ = with_open_as_one(rows(1 - MOTION), (spec,), Episode(source_episode=0, rows=None))
    action_TD, state_TD = vectors(table["action"]), vectors(table["observation_state"])
    assert action_TD is not None and state_TD is not None
    assert np.array_equal(action_TD[:, 0], np.arange(10)) and np.allclose(state_TD[:, 1], 1 - MOTION)


@pytest.mark.parametrize(
    ("values", "changes", "code"),
    [
        (MOTION * 2 - 1, {}, "LAKE-056"),  # -1/1 declared as 0/1
        (MOTION * 0.08, {}, "LAKE-055"),  # metres declared as 0/1: never open
        (MOTION, {"dim": 2}, "LAKE-056"),
        (MOTION, {"open": 0.0}, "LAKE-056"),
    ],
)
def test_a_wrong_declaration_is_found(values: np.ndarray, changes: dict[str, float], code: str) -> None:
    declared = {"column": "action", "dim": 1, "open": 1.0, "closed": 0.0} | changes
    assert mapped(values, GripperSpec(**declared))[1] == [code]  # pyright: ignore[reportArgumentType]
