"""`relabel`, `merge`, `compact` and `tag` on the command line: what they say, and what machines get."""

import json
from pathlib import Path
from typing import Any

import pytest

from data_lake.tables import read_manifest
from flows.cli import main
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import ingest

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for number, lengths in enumerate(((8,), (8, 12))):
        ingest(write_v2(tmp_path / f"source-{number}", lengths), tmp_path / "lake/datasets/cart")
    return tmp_path / "lake"


def answer(lake: Path, capsys: Captured, *arguments: str, status: int = 0) -> Any:
    places = ["--lake", str(lake), "--home", str(lake.parent / "home"), "--json"]
    assert main([*arguments, *places]) == status
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_a_data_set_is_edited_and_its_history_told(lake: Path, tmp_path: Path, capsys: Captured) -> None:
    made = answer(lake, capsys, "relabel", "cart", "--episode", "source-1:1", "--instruction", "wait")
    assert made == {
        "command": "relabel",
        "ok": True,
        "result": {
            "dataset": "cart",
            "version": 3,
            "is_new": True,
            "told": {"num_episodes": 1, "instructions": ["wait"]},
        },
    }
    (tmp_path / "labels.csv").write_text("episode,instruction\n0,go\n1,go\n")
    assert answer(lake, capsys, "relabel", "cart", "--from", str(tmp_path / "labels.csv"))["result"]["version"] == 4
    assert answer(lake, capsys, "merge", "cart@1", "cart", "--into", "all")["result"]["told"]["num_episodes"] == 2
    assert answer(lake, capsys, "compact", "cart")["result"]["told"]["frames"] == {
        "fragments_before": 2,
        "fragments": 1,
    }
    edits = [read_manifest(lake / "datasets/cart", version) for version in range(1, 6)]
    assert [list(each.edit or {}) if each else None for each in edits] == [
        [],
        [],
        ["relabel", "by"],
        ["relabel", "by"],
        ["compact", "by"],
    ]


def test_a_tag_is_understood_everywhere(lake: Path, capsys: Captured) -> None:
    assert answer(lake, capsys, "tag", "cart@1", "paper")["result"]["version"] == 1
    assert answer(lake, capsys, "tag", "cart", "paper", status=1)["error"]["code"] == "LAKE-183"
    assert answer(lake, capsys, "doctor", "cart@paper")["episodes"] == {"in": 1, "ok": 1, "quarantined": 0}
    assert answer(lake, capsys, "doctor", "cart@2")["episodes"]["in"] == 2
    assert answer(lake, capsys, "path", "cart@paper")["version"] == 1
    assert answer(lake, capsys, "tag", "cart", "paper", "--move")["result"]["number"] == 2
    assert answer(lake, capsys, "doctor", "cart@nothing", status=1)["error"]["code"] == "LAKE-184"


def test_old_versions_are_given_up_by_name(lake: Path, capsys: Captured) -> None:
    answer(lake, capsys, "tag", "cart@1", "paper")
    done = answer(lake, capsys, "compact", "cart", "--forget-before", "3")["result"]
    assert (done["version"], done["given_up"], done["kept"]) == (3, [2], {"1": "it has the tag paper"})
    assert answer(lake, capsys, "path", "cart@2", status=1)["error"]["code"] == "LAKE-182"


def test_people_are_told_what_happened(lake: Path, capsys: Captured) -> None:
    places = ["--lake", str(lake), "--home", str(lake.parent / "home")]
    main(["relabel", "cart", "--episode", "1", "--instruction", "wait", *places])
    main(["merge", "cart", "--into", "cart", *places])
    main(["merge", "cart@2", "--into", "cart", *places])
    main(["compact", "cart", "--forget-before", "4", *places])
    shown = capsys.readouterr().out
    for words in (
        "cart@3: 1 episode relabelled",
        "ingest.source=lake:cart@3",
        "unchanged, nothing is new",
        "not taken twice: 2 recordings there already",
        "cart@2 episode 1 is cart episode 1 under other words",
        "1 recording kept the words that cart has",
        "fragments: frames 2 -> 1, videos 2 -> 1",
        "given up: 1, 2, 3",
    ):
        assert words in shown


@pytest.mark.parametrize(
    "given", [(), ("--episode", "1"), ("--instruction", "wait"), ("--from", "x", "--episode", "1")]
)
def test_labels_are_given_in_one_way(lake: Path, capsys: Captured, given: tuple[str, ...]) -> None:
    assert answer(lake, capsys, "relabel", "cart", *given, status=2)["error"]["code"] == "CLI-001"
