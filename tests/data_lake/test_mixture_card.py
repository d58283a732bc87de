"""The card of a mixture: statistics of each robot over all of its rows; unlike components are refused by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data_lake.samples import SampleTable
from errors import UserError
from tests.data_lake.lake_fixture import RECORDED
from tests.data_lake.mixed_lake import SECOND, made, mixed, two_robots


def test_statistics_are_of_each_robot_before_padding(tmp_path: Path) -> None:
    found = two_robots(tmp_path)
    card = found.card
    assert card["embodiment"] is None and (card["proprio_dim"], card["action_dim"]) == (6, 6)
    assert {name: len(part["stats"]["action"]["mean"]) for name, part in card["robots"].items()} == {
        "arm": 4,
        "cart": 6,
    }
    for table in found.tables:
        assert card["robots"][table.card["embodiment"]]["stats"] == table.card["stats"]


def test_components_of_one_robot_have_the_statistics_of_all_their_rows(tmp_path: Path) -> None:
    """The oracle: both sets of recordings ingested as one."""
    parts = made(tmp_path, "a", RECORDED[:4], heldout_episodes=(13,)), made(tmp_path, "b", RECORDED[4:])
    found = mixed(tmp_path, *parts).card
    rows = [table.step_columns("proprio", "action") for table in (SampleTable(tmp_path / each) for each in parts)]
    learnt = {name: np.concatenate([rows[0][at][:19], rows[1][at]]) for at, name in enumerate(("proprio", "action"))}
    for name, values in learnt.items():  # 19 steps of the first three episodes; the fourth is held out
        assert found["stats"][name]["count"] == 19 + 16
        np.testing.assert_allclose(found["stats"][name]["mean"], values.astype(float).mean(0))
        np.testing.assert_allclose(found["stats"][name]["q99"], np.quantile(values.astype(float), 0.99, axis=0))
    assert found["embodiment"] == "arm" and [each["name"] for each in found["components"]] == list(parts)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"inputs": {"image_size": 8}}, "policy.inputs"),
        ({"embodiment": "arm", "dim": 6}, "layout"),
        ({"inputs": {"state": "text"}}, "policy.inputs"),
    ],
)
def test_unlike_components_are_refused_by_name(tmp_path: Path, changes: dict[str, Any], what: str) -> None:
    parts = made(tmp_path, "a", SECOND), made(tmp_path, "b", SECOND, **changes)
    with pytest.raises(UserError, match=f"(?s)PACK-011.*{what}.*preprocess/b"):
        mixed(tmp_path, *parts)


def test_the_state_as_text_cannot_be_shared(tmp_path: Path) -> None:
    parts = [made(tmp_path, name, SECOND, inputs={"state": "text"}) for name in ("a", "b")]
    with pytest.raises(UserError, match="(?s)PACK-011.*state as text"):
        mixed(tmp_path, *parts)
