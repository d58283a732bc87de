"""What only shows over all episodes: repetitions, leaks between splits, videos that fit another episode."""

from dataclasses import replace

import pytest

from data_lake.sources.episode import Episode
from data_lake.tally import Sums, Tally
from tests.data_lake.recordings import rows_of
from tests.data_lake.test_checks import CARD


def test_a_repetition_is_said_once_and_not_of_its_videos() -> None:
    tally = Tally()
    assert tally.repeats(3, "a", "h", {"front": "x"}) == []
    found = tally.repeats(5, "a", "h", {"front": "x"})
    assert [(item.code, item.episode, item.message.split(": ")[1]) for item in found] == [
        ("LAKE-147", 5, "of episode 3")
    ]
    assert [item.code for item in tally.repeats(6, "b", "h", {"front": "x"})] == ["LAKE-033"]


@pytest.mark.parametrize(
    ("splits", "expected"),
    [
        ({"train": range(3)}, []),
        ({"train": range(2), "test": range(2, 3)}, []),
        ({"train": range(3), "test": range(1, 3)}, [("LAKE-149", 1)]),
        ({"train": range(2), "a": range(1, 2), "b": range(1)}, [("LAKE-149", 1), ("LAKE-149", 0)]),
        ({"test": range(3), "val": range(3)}, []),
    ],
)
def test_episodes_in_two_splits(splits: dict[str, range], expected: list[tuple[str, int]]) -> None:
    tally = Tally(Sums(lengths={0: 5, 1: 5, 2: 5}))
    assert [(item.code, item.episode) for item in tally.findings(replace(CARD, splits=splits))] == expected


@pytest.mark.parametrize(("first", "second"), [(0, 2), (2, 0)])
def test_the_same_content_in_two_splits(first: int, second: int) -> None:
    tally = Tally(Sums(lengths={0: 5, 1: 5, 2: 5}))
    tally.repeats(first, "a", "h", {})
    tally.repeats(second, "a", "h", {})
    found = tally.findings(replace(CARD, splits={"train": range(2), "test": range(2, 3)}))
    assert [(item.code, item.episode) for item in found] == [("LAKE-149", 2)]
    assert "train has the same content as episode 0" in found[0].message


def test_a_video_that_is_as_long_as_another_episode() -> None:
    """D10: one whose own video does not fit comes first, else the nearest; 'fits' is all that is claimed."""
    tally = Tally(Sums(lengths={0: 5, 1: 7, 2: 7, 3: 9}))
    tally.sums.misfits = {("front", 0): 7, ("front", 2): 5, ("wrist", 3): 7, ("wrist", 0): 99}
    found = tally.findings(CARD)
    assert [(item.code, item.severity, item.camera, item.episode) for item in found] == [
        ("LAKE-150", "note", "front", 0),
        ("LAKE-150", "note", "front", 2),
        ("LAKE-150", "note", "wrist", 3),
    ]
    assert "would fit episode 2, whose own video does not fit either" in found[0].message
    assert found[2].message.endswith("would fit episode 2")
    assert all("content was not compared" in item.message for item in found)


def test_rows_are_known_of_bad_episodes_too() -> None:
    sums = Sums()
    sums.look(Episode(source_episode=4, rows=rows_of(4, 6, 0)))
    sums.look(Episode(source_episode=5, rows=None))
    assert sums.lengths == {4: 6} and not sums.columns.complete
