"""Rows of episodes come complete and in order, or not at all."""

from dataclasses import replace
from pathlib import Path

import lance
import numpy as np
import pytest

from data_lake.steps import read_steps
from errors import UserError
from tests.data_lake.conftest import CodedLake
from tests.data_lake.lake_fixture import RECORDED, rows_of, write_dataset


def test_rows_in_the_order_of_the_view(coded: CodedLake) -> None:
    """Episodes 5, 0 and 2, of 7, 9 and 4 steps."""
    view = replace(coded.view, episodes=tuple(coded.view.episodes[number] for number in (5, 0, 2)))
    steps = read_steps(view, coded.dataset)
    assert steps.starts_E.tolist() == [0, 7, 16]
    for number, start in zip((5, 0, 2), steps.starts_E, strict=True):
        proprio_TP, actions_TA = rows_of(number, RECORDED[number].length)
        assert np.array_equal(steps.proprio_TP[start : start + len(proprio_TP)], proprio_TP)
        assert np.array_equal(steps.actions_TA[start : start + len(actions_TA)], actions_TA)


def test_rows_are_those_of_the_views_version(coded: CodedLake, tmp_path: Path) -> None:
    """What was appended after the view, even under a number of its episodes, is not seen."""
    vector = write_dataset(tmp_path, RECORDED)
    frames = lance.dataset(str(tmp_path / "frames.lance"))
    lance.write_dataset(frames.to_table(limit=3), frames.uri, mode="append")
    steps = read_steps(replace(coded.view, vector=vector), tmp_path)
    assert len(steps.proprio_TP) == 47
    newer = replace(coded.view, vector=vector | {"frames": vector["frames"] + 1})
    with pytest.raises(UserError, match="PREP-002"):
        read_steps(newer, tmp_path)


def test_an_episode_of_another_length_is_refused(coded: CodedLake) -> None:
    longer = replace(coded.view.episodes[2], length=5)
    with pytest.raises(UserError, match="PREP-002.*episode 2 has 4 rows"):
        read_steps(replace(coded.view, episodes=(longer,)), coded.dataset)
