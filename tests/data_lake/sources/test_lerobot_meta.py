"""What a LeRobot folder says of itself: tasks, episode numbers, statistics and splits."""

import json
from pathlib import Path

import pytest

from data_lake.sources.lerobot import LeRobotFolder
from tests.data_lake.recordings import CAMERA, TASKS, change_info, write_lines, write_v2, write_v3


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    return write_v2(tmp_path / "v2")


@pytest.fixture
def v3(v2: Path, tmp_path: Path) -> Path:
    return write_v3(tmp_path / "v3", v2)


def test_tasks_that_nobody_uses_and_sentences_twice(v2: Path) -> None:
    """D11: case, spaces and a full stop make no other sentence."""
    tasks = [*TASKS, "open the door", "Lift  the cube."]
    write_lines(v2 / "meta/tasks.jsonl", [{"task_index": n, "task": task} for n, task in enumerate(tasks)])
    change_info(v2, total_tasks=4)
    found = {item.code: item for item in LeRobotFolder(v2).card.findings}
    assert found.keys() == {"LAKE-145", "LAKE-146"}
    assert found["LAKE-145"].message.endswith("2: 'open the door', 'Lift  the cube.'")
    assert found["LAKE-146"].message.endswith("'lift the cube' is [1, 3]")


def test_numbers_that_are_keys(v2: Path) -> None:
    """D05: a subset is no defect, but who takes numbers for positions should know."""
    lines = [json.loads(line) for line in (v2 / "meta/episodes.jsonl").read_text().splitlines()][1:]
    write_lines(v2 / "meta/episodes.jsonl", lines)
    found = {item.code: item.severity for item in LeRobotFolder(v2).card.findings}
    assert found["LAKE-151"] == "note"


@pytest.mark.parametrize("layout", ["v2", "v3"])
def test_statistics_and_splits_as_stated(layout: str, v2: Path, v3: Path) -> None:
    source = LeRobotFolder(v2 if layout == "v2" else v3)
    assert source.card.splits == {"train": range(3)}
    assert set(source.card.statistics) == (set() if layout == "v2" else set(source.card.features) - {CAMERA})
    for item in source.episodes():
        assert item.statistics["action"]["count"] == [item.length]
        assert ("q99" in item.statistics["action"]) == (layout == "v3")


@pytest.mark.parametrize("line", ["", '{"episode_index": 1, "stats": {"action": 5}}\n', "[\n"])
def test_statistics_of_an_episode_that_cannot_be_read(line: str, v2: Path) -> None:
    """They cost nothing but themselves: rows need none, and those of other episodes stay."""
    path = v2 / "meta/episodes_stats.jsonl"
    first, _, third = path.read_text().splitlines(keepends=True)
    path.write_text(first + third + line)
    found = {item.source_episode: item for item in LeRobotFolder(v2).episodes()}
    assert {number: [each.code for each in item.findings] for number, item in found.items()} == {
        0: [],
        1: ["LAKE-053"],
        2: [],
    }
    assert found[0].statistics and found[2].statistics and not found[1].statistics
