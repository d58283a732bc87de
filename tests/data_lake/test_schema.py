"""Canonical rows: one form and one digest, whatever layout a source chose."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_lake.schema import canonical, features_of, fixed, frames_of, rows_digest, vectors


def rows(state: pa.Array, text: str = "push") -> pa.Table:
    count = len(state)
    return pa.table(
        {
            "observation.state": state,
            "action": pa.array([[1.0, 2.0]] * count),
            "next.reward": pa.array([0.5] * count),
            "annotation.human.validity": pa.array([1] * count),
            "timestamp": pa.array([0.05 * row for row in range(count)]),
            "index": pa.array(range(7, 7 + count)),
            "task": pa.array([text] * count),
        }
    )


VALUES = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


def test_layouts_agree() -> None:
    as_list = rows(pa.array(VALUES, pa.list_(pa.float64())))
    as_fixed = rows(pa.array(VALUES, pa.list_(pa.float32(), 3)))
    chunked = pa.concat_tables([as_list.slice(0, 1), as_list.slice(1)])
    tables = [canonical(table) for table in (as_list, as_fixed, chunked)]
    assert {rows_digest(table, 20.0) for table in tables} == {rows_digest(tables[0], 20.0)}
    assert tables[0].schema.field("observation_state").type == pa.list_(pa.float32(), 3)
    assert tables[0].column_names == ["action", "next_reward", "observation_state", "task"]


def test_a_sliced_column_keeps_its_own_rows() -> None:
    table = rows(pa.array([*VALUES, [7.0, 8.0, 9.0]], pa.list_(pa.float32(), 3)))
    whole, part = canonical(table), canonical(table.slice(1, 1))
    assert part["observation_state"].to_pylist() == [[4.0, 5.0, 6.0]]
    assert rows_digest(part, 20.0) == rows_digest(whole.slice(1, 1), 20.0)


@pytest.mark.parametrize("change", ["value", "text", "rate", "count"])
def test_the_digest_sees(change: str) -> None:
    first = canonical(rows(pa.array(VALUES)))
    other = [*VALUES[:1], [4.0, 5.0, 6.5]] if change == "value" else VALUES[:1] if change == "count" else VALUES
    second = canonical(rows(pa.array(other), "lift" if change == "text" else "push"))
    assert rows_digest(first, 20.0) != rows_digest(second, 30.0 if change == "rate" else 20.0)


@given(st.lists(st.lists(st.floats(width=32, allow_nan=False), min_size=2, max_size=2), min_size=1, max_size=20))
def test_vectors_come_back(values: list[list[float]]) -> None:
    matrix = np.asarray(values, np.float32)
    assert np.array_equal(vectors(pa.chunked_array([fixed(matrix)])), matrix)
    assert np.array_equal(vectors(pa.chunked_array([pa.array(values, pa.list_(pa.float32()))])), matrix)


@pytest.mark.parametrize("column", [[[1.0, 2.0], [3.0]], [[1.0, None], [2.0, 3.0]], [None, [1.0, 2.0]]])
def test_ragged_or_missing_values_are_no_vectors(column: list[object]) -> None:
    assert vectors(pa.chunked_array([pa.array(column, pa.list_(pa.float64()))])) is None


def test_the_lake_numbers_rows_itself() -> None:
    frames = frames_of(canonical(rows(pa.array(VALUES))), fps=4.0, episode=3, first_index=100, tasks={"push": 6})
    assert frames["index"].to_pylist() == [100, 101]
    assert frames["frame_index"].to_pylist() == [0, 1]
    assert frames["episode_index"].to_pylist() == [3, 3]
    assert frames["task_index"].to_pylist() == [6, 6]
    assert frames["timestamp"].to_pylist() == [0.0, 0.25]
    assert frames.schema.field("timestamp").type == pa.float32()
    assert "task" not in frames.column_names


def test_features_as_lerobot_declares_them() -> None:
    frames = frames_of(canonical(rows(pa.array(VALUES))), fps=4.0, episode=0, first_index=0, tasks={"push": 0})
    features = features_of(frames.schema, {"observation_state": ("observation.state", ["x", "y", "z"])})
    assert features["observation.state"] == {"dtype": "float32", "shape": [3], "names": ["x", "y", "z"]}
    assert features["index"] == {"dtype": "int64", "shape": [1], "names": None}
