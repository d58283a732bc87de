"""Choosing episodes: exactly those that SQL or numbers name, whichever numbers are asked by."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_lake.curation import Choice, choose, episode_columns
from data_lake.edits.relabel import relabel
from data_lake.version import DatasetVersion, open_version
from errors import UserError
from tests.data_lake.edits.test_relabel import saying
from tests.data_lake.recordings import change_episodes, write_v2
from tests.data_lake.seen import ingest

LENGTHS = (8, 12, 10, 6, 12)
TASKS = ("push the cube", "lift the cube")  # by turns


@pytest.fixture(scope="module")
def version(tmp_path_factory: pytest.TempPathFactory) -> DatasetVersion:
    """Five episodes, and of a second source the first two again with a sixth: eight rows, six recordings."""
    root = tmp_path_factory.mktemp("lake")
    for number, lengths in enumerate((LENGTHS, (8, 12, 4))):
        ingest(write_v2(root / f"source-{number}", lengths), root / "datasets" / "cart")
    return open_version(root, "cart")


def numbers(version: DatasetVersion, **choice: str) -> list[int]:
    return [row["episode_index"] for row in choose(version, Choice(**choice))]


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("length > 8", [1, 2, 4]),
        ("instruction = 'push the cube' and length between 8 and 10", [0, 2]),
        ("source_episode in (0, 2)", [0, 2, 5]),
        ("length = (select max(length) from episodes)", [1, 4]),
        ("episode_index in (select episode_index from frames group by episode_index having count(*) < 7)", [3, 5]),
        ("episode_index in (select episode_index from frames where observation_state[0] > 5)", [1, 4]),
        ("list_contains(cameras, 'front') and fps = 10", [0, 1, 2, 3, 4, 5]),
        ("length > 8 -- as long as it takes", [1, 2, 4]),
        ("length > 100", []),
    ],
)
def test_sql_over_episodes_and_their_frames(version: DatasetVersion, where: str, kept: list[int]) -> None:
    assert numbers(version, where=where) == kept


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("lenth > 8", "lenth"),
        ("length >", "expression"),
        ("length", "Boolean"),
        ("length > 'long'", "compar"),
        ("seed(length)", "seed"),
    ],
)
def test_sql_that_cannot_be_answered_lists_the_columns(version: DatasetVersion, where: str, reason: str) -> None:
    with pytest.raises(UserError) as refused:
        numbers(version, where=where)
    assert refused.value.code == "LAKE-206" and reason in refused.value.message
    assert "\n" not in refused.value.message and where in refused.value.where
    assert {"length,", "source_episode,", "observation_state,"} <= set(refused.value.next_step.split())


@given(keep=st.sets(st.integers(0, 5)), drop=st.sets(st.integers(0, 5)))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_numbers_are_keys(version: DatasetVersion, keep: set[int], drop: set[int]) -> None:
    """Exactly those rows, in the order of the lake, whatever order they are asked in."""
    listed = {"episodes": ",".join(map(str, sorted(keep, reverse=True))), "exclude": ",".join(map(str, drop))}
    assert numbers(version, **listed) == [
        number for number in range(6) if (not keep or number in keep) and number not in drop
    ]


def test_either_numbering(version: DatasetVersion) -> None:
    assert numbers(version, episodes="1-3") == [1, 2, 3]
    assert numbers(version, episodes="source:1") == [1]
    assert numbers(version, episodes="source-1:2,source:4, 5", exclude="5") == [4]
    with pytest.raises(UserError, match="(?s)LAKE-208.*source:2 may be any of the episodes 2 .source-0., 5 .source-1."):
        numbers(version, exclude="source:2")
    assert numbers(version, episodes="0-4", where="length > 8", exclude="4") == [1, 2]


def _with(version: DatasetVersion, episodes: Sequence[dict[str, Any]]) -> DatasetVersion:
    return replace(version, episode_rows=pa.Table.from_pylist(list(episodes)))


def test_another_copy_of_an_excluded_recording_does_not_come_back(tmp_path: Path) -> None:
    """The source moved its episode 0 to number 3: two rows, one recording."""
    first = write_v2(tmp_path / "first", (8, 12))
    ingest(first, tmp_path / "datasets" / "cart")
    version = open_version(tmp_path, "cart")
    doubled = (*version.episodes, {**version.episodes[0], "episode_index": 2, "source_episode": 3})
    copied = _with(version, doubled)
    assert numbers(copied) == [0, 1, 2]
    assert numbers(copied, exclude="0") == [1]


def test_nor_does_one_under_other_words(tmp_path: Path) -> None:
    """Also of a data set from before it was noted which recording each episode is."""
    for folder in (
        write_v2(tmp_path / "first", (8, 12, 10)),
        saying(write_v2(tmp_path / "said", (8, 12, 8)), 1, "wait"),
    ):
        ingest(folder, tmp_path / "datasets" / "cart")
    relabel(tmp_path, "cart", [("0", "go")], who="ada")
    version = open_version(tmp_path, "cart")
    older = replace(version, episode_rows=version.episode_rows.drop_columns(["recording"]))
    for each in (version, older):
        assert [row["instruction"] for row in each.episodes] == ["go", TASKS[1], TASKS[0], "wait", TASKS[0]]
        assert numbers(each, exclude="1") == numbers(each, exclude="3") == [0, 2, 4]
        assert numbers(each, exclude="0", episodes="0-3") == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "code"), [("3,x", "LAKE-207"), ("5-3", "LAKE-207"), ("-1", "LAKE-207"), ("1-9", "LAKE-208")]
)
def test_numbers_that_are_none(version: DatasetVersion, text: str, code: str) -> None:
    with pytest.raises(UserError) as refused:
        numbers(version, episodes=text)
    assert refused.value.code == code
    with pytest.raises(UserError, match=code):
        numbers(version, exclude=text)


def test_what_a_source_says_of_its_episodes_is_a_column(version: DatasetVersion) -> None:
    """As text where its type changes, and beside a column of the lake where the name is taken."""
    extras = ('{"seed": 1, "length": "long"}', '{"seed": "two"}')
    episodes = tuple({**row, "extra": extra} for row, extra in zip(version.episodes, extras, strict=False))
    table = episode_columns(_with(version, episodes))
    assert table["seed"].to_pylist() == ["1", "two"]
    assert table["length"].to_pylist() == [8, 12] and table["extra_length"].to_pylist() == ["long", None]


ODD = (
    st.integers() | st.floats() | st.booleans() | st.text(st.characters(exclude_categories=()), max_size=2) | st.none()
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(said=st.lists(st.dictionaries(st.sampled_from(["seed", "length", "extra_length"]), ODD), min_size=2, max_size=2))
def test_whatever_a_source_says_can_be_asked_for(version: DatasetVersion, said: list[dict[str, Any]]) -> None:
    """Integers beyond 64 bits, kinds that differ, halves of letters; no name takes the place of another."""
    told = zip(version.episodes[:2], said, strict=True)
    table = episode_columns(_with(version, [{**row, "extra": json.dumps(extra)} for row, extra in told]))
    plain = len(episode_columns(version).column_names)
    assert len(set(table.column_names)) == plain + len({*said[0], *said[1]})
    assert table["length"].to_pylist() == [row["length"] for row in version.episodes[:2]]


def test_a_count_beyond_64_bits_does_not_stop_a_filter(tmp_path: Path) -> None:
    source = write_v2(tmp_path / "v2")
    change_episodes(source, 1, serial=2**63, many=2**200)
    ingest(source, tmp_path / "datasets/cart")
    found = open_version(tmp_path, "cart")
    assert numbers(found, where="length > 8") == [1, 2]
    assert numbers(found, where=f"serial = '{2**63}'") == [1]
