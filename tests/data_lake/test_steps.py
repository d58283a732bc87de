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


def read(coded: CodedLake, *numbers: int, version: int | None = None, folder: Path | None = None) -> list:
    episodes = [coded.view.episodes[number] for number in numbers]
    uri = str((folder or coded.dataset) / "frames.lance")
    return read_steps(uri, version or coded.view.vector["frames"], episodes)


def test_rows_in_the_order_of_the_episodes(coded: CodedLake) -> None:
    """Some of them follow one another in the table, some do not."""
    numbers = (5, 6, 0, 2, 3)
    for number, steps in zip(numbers, read(coded, *numbers), strict=True):
        proprio_TP, actions_TA = rows_of(number, RECORDED[number].length)
        assert np.array_equal(steps.proprio_TP, proprio_TP)
        assert np.array_equal(steps.actions_TA, actions_TA)


def test_rows_are_those_of_the_views_version(coded: CodedLake, tmp_path: Path) -> None:
    """A later version begins with other rows; an episode is not looked for elsewhere."""
    vector = write_dataset(tmp_path, RECORDED)
    frames = lance.dataset(str(tmp_path / "frames.lance"))
    lance.write_dataset(frames.to_table(offset=3), frames.uri, mode="overwrite")
    assert len(read(coded, 6, version=vector["frames"], folder=tmp_path)[0].proprio_TP) == 8
    with pytest.raises(UserError, match="PREP-002"):
        read(coded, 6, version=vector["frames"] + 1, folder=tmp_path)


def test_an_episode_of_another_length_is_refused(coded: CodedLake) -> None:
    longer = replace(coded.view.episodes[2], length=5)
    with pytest.raises(UserError, match="PREP-002.*episode 2 has 4 rows"):
        read_steps(str(coded.dataset / "frames.lance"), coded.view.vector["frames"], [longer])


def test_the_last_episode_cut_short_is_refused(coded: CodedLake) -> None:
    """Behind its rows the table ends."""
    longer = replace(coded.view.episodes[6], length=9)
    with pytest.raises(UserError, match="PREP-002.*episode 6 has 8 rows"):
        read_steps(str(coded.dataset / "frames.lance"), coded.view.vector["frames"], [longer])
