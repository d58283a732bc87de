"""Episodes by the lake's numbers or the source's, and files of labels: understood, or refused by the line."""

from pathlib import Path

import pytest

from data_lake.edits.asked import episodes_asked, read_labels
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
    assert refused.value.code == "LAKE-181" and "sources: garage, kitchen" in refused.value.where


def test_files_of_labels(tmp_path: Path) -> None:
    wanted = [("0", "wait"), ("garage:1", 'say "go", then go')]
    lines, table = tmp_path / "labels.jsonl", tmp_path / "labels.csv"
    lines.write_text(
        '{"episode": 0, "instruction": "wait"}\n\n'
        + '{"episode": "garage:1", "instruction": "say \\"go\\", then go"}\n'
    )
    table.write_text('episode,instruction\n0,wait\ngarage:1,"say ""go"", then go"\n')
    assert read_labels(lines) == read_labels(table) == wanted


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.jsonl", '{"episode": 0, "instruction": "wait"}\n{"episode"', "line 2"),
        ("a.jsonl", '{"instruction": "wait"}', "line 1"),
        ("a.jsonl", '{"episode": 0, "instruction": null}', "line 1"),
        ("a.jsonl", "[1]", "line 1"),
        ("a.csv", "episode,instruction\n0,wait\n1\n", "line 3"),
        ("a.csv", "episode,task\n0,wait\n", "line 2"),
        ("a.csv", "episode,instruction\n", "a.csv"),
        ("a.jsonl", "", "a.jsonl"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError) as refused:
        read_labels(tmp_path / name)
    assert refused.value.code == "LAKE-187" and words in refused.value.where


def test_no_file_of_labels(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_labels(tmp_path / "nothing.csv")
