"""Every robot of the table is consistent, survives JSON, and its transforms undo each other."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from errors import UserError
from model_core.embodiments import EMBODIMENTS, GR1, check_embodiment, find_embodiment, from_layout, layout_of
from model_core.transforms import training_actions, untrained_actions


@pytest.mark.parametrize("name", EMBODIMENTS)
def test_a_robot_survives_json(name: str) -> None:
    robot = find_embodiment(name)
    assert robot.name == name
    assert from_layout(json.loads(json.dumps(layout_of(robot)))) == robot


@pytest.mark.parametrize("name", EMBODIMENTS)
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), horizon=st.integers(1, 9), spread=st.sampled_from([0.01, 1.0, 30.0]))
def test_inverse_of_forward_is_identity(name: str, seed: int, horizon: int, spread: float) -> None:
    robot, rng = find_embodiment(name), np.random.default_rng(seed)
    actions = (rng.normal(size=(3, horizon, robot.action_dim)) * spread).astype(np.float32)
    proprio = (rng.normal(size=(3, robot.state_dim)) * spread).astype(np.float32)
    there = training_actions(actions, proprio, robot)
    np.testing.assert_allclose(untrained_actions(there, proprio, robot), actions, atol=1e-6 * max(1.0, spread))


def test_only_masked_actions_become_changes_from_the_state_at_the_start() -> None:
    robot = replace(
        GR1,
        state_names=("a", "b"),
        state_units=("rad",) * 2,
        action_names=("x", "y"),
        action_units=("rad",) * 2,
        delta_mask=(True, False),
        action_from_state=(1, 0),
    )
    learnt = training_actions(np.array([[10.0, 7.0], [11.0, 8.0]]), np.array([1.0, 4.0]), robot)
    assert learnt.tolist() == [[6.0, 7.0], [7.0, 8.0]]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"delta_mask": (True,)}, "delta_mask"),
        ({"action_from_state": (44,) * 44}, "left_arm_0"),
        ({"action_from_state": (-1,) * 44}, "left_arm_0"),
    ],
)
def test_a_robot_that_contradicts_itself_is_refused(changes: dict[str, tuple[int, ...]], word: str) -> None:
    with pytest.raises(UserError) as caught:
        check_embodiment(replace(GR1, **changes))
    assert caught.value.code == "EMBODIMENT-001"
    assert word in str(caught.value)


def test_an_unknown_robot_is_named_with_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'gr1'"):
        find_embodiment("gr2")


def test_gr1_is_as_its_data_says(shared_data: Path) -> None:
    modality = json.loads((shared_data / "lerobot-v2.0-gr1-picknplace/meta/modality.json").read_text())
    for group, where in modality["action"].items():
        assert set(GR1.action_names[where["start"] : where["end"]]) == {
            f"{group}_{i}" for i in range(where["end"] - where["start"])
        }
        start = modality["state"][group]["start"]
        assert GR1.action_from_state[where["start"]] == start
