"""Episodes by the lake's numbers or the source's: understood, or refused with the reason, at whatever size."""

import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from data_lake.asked import episodes_asked
from data_lake.curation import Choice, choose
from data_lake.version import DatasetVersion, open_version
from errors import UserError
from tests.data_lake.edits.test_merge import other_rows
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import ingest


@pytest.fixture
def version(tmp_path: Path) -> DatasetVersion:
    """Two sources that both count from 0; the second has one episode more."""
    root = tmp_path / "lake/datasets/cart"
    ingest(write_v2(tmp_path / "kitchen", (8, 12)), root)
    ingest(write_v2(tmp_path / "garage", (6, 7, 9), rows=other_rows), root)
    return open_version(tmp_path / "lake", "cart")


def test_a_second_source_of_the_same_numbers_adds(version: DatasetVersion) -> None:
    found = [(row["episode_index"], row["source"], row["source_episode"]) for row in version.episodes]
    kitchen, garage = [(n, "kitchen", n) for n in range(2)], [(n + 2, "garage", n) for n in range(3)]
    assert found == kitchen + garage


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("3", [3]),
        ("0-1,4", [0, 1, 4]),
        (" 2 , 2", [2, 2]),
        ("kitchen:1", [1]),
        ("garage:0-1", [2, 3]),
        ("source:2", [4]),
    ],
)
def test_asked(version: DatasetVersion, asked: str, found: list[int]) -> None:
    assert episodes_asked(version, asked) == found


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("5", "no episode 5"),
        ("3-9", "no episode 5"),
        ("kitchen:2", "no episode 2 of source 'kitchen'"),
        ("source:1", r"may be any of the episodes 1 \(kitchen\), 3 \(garage\)"),
        ("", "not an episode"),
        ("-1", "not an episode"),
        ("2-1", "not an episode"),
        ("attic:0", "of source 'attic'"),
    ],
)
def test_not_there(version: DatasetVersion, asked: str, words: str) -> None:
    with pytest.raises(UserError, match=words) as refused:
        episodes_asked(version, asked)
    code = "LAKE-207" if words == "not an episode" else "LAKE-208"
    assert refused.value.code == code and "cart@2: 5 episodes, 0 to 4 · sources: garage, kitchen" in refused.value.where


@pytest.mark.parametrize("asked", ["0-999999999999", "2-1,0-9", "kitchen:0-999999999999", "9" * 5000, "source:1"])
def test_views_refuse_what_relabel_refuses_and_as_fast(version: DatasetVersion, asked: str) -> None:
    begun = time.monotonic()
    with pytest.raises(UserError) as refused:
        episodes_asked(version, asked)
    for choice in (Choice(episodes=asked), Choice(exclude=asked)):
        with pytest.raises(UserError) as refused_alike:
            choose(version, choice)
        assert (refused_alike.value.code, refused_alike.value.message) == (refused.value.code, refused.value.message)
    assert time.monotonic() - begun < 1


def test_a_long_range_that_is_there_is_found_in_one_look(version: DatasetVersion) -> None:
    many = replace(
        version,
        episode_rows=pa.Table.from_pylist(
            [{"episode_index": n, "source_episode": n, "source": "a"} for n in range(50_000)]
        ),
    )
    begun = time.monotonic()
    assert episodes_asked(many, "a:0-49999") == list(range(50_000))
    assert time.monotonic() - begun < 5
