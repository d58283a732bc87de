"""Times and sizes as people read them; errors by their class of use; and nothing of data that rules a terminal."""

import json
from pathlib import Path

import pytest

from data_lake.words import UNPRINTABLE
from errors import UserError
from flows.cli import main
from flows.screen import FAILED, WRONG_USE, Screen, error_object, exit_status, seconds, size
from tests.data_lake.edits.test_relabel import saying
from tests.data_lake.recordings import write_lines, write_v2
from tests.data_lake.seen import ingest
from tests.data_lake.test_words import STEERING, TURNING

Captured = pytest.CaptureFixture[str]
EVIL = (
    "go [/bold]"
    + "".join(each for each in (*STEERING, *TURNING, "\u2028", "\u2029") if each != "\0")
    + "\x1b]0;owned\x07"
)


@pytest.mark.parametrize(
    ("value", "text"), [(0.21, "0.2s"), (4.4, "4s"), (59.6, "1m 00s"), (91, "1m 31s"), (7_500, "2h 05m")]
)
def test_seconds(value: float, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (1_500, "1.5 kB"), (139_804, "140 kB"), (2.9e9, "2.9 GB"), (3e12, "3.0 TB")],
)
def test_size(value: float, text: str) -> None:
    assert size(value) == text


@pytest.mark.parametrize(("code", "status"), [("RECIPE-003", WRONG_USE), ("CLI-001", WRONG_USE), ("LAKE-001", FAILED)])
def test_status_follows_the_code(code: str, status: int) -> None:
    assert exit_status(UserError(code, "x")) == status


def test_error_object_has_four_parts() -> None:
    error = UserError("LAKE-007", "torn", where="a.parquet", done="quarantine", next_step="copy")
    assert error_object(error) == {
        "error": {"code": "LAKE-007", "message": "torn", "where": "a.parquet", "next": "copy"}
    }


def steering(text: str) -> set[str]:
    return set(UNPRINTABLE.findall(text)) - {"\n"}


def test_no_word_of_data_rules_a_terminal(tmp_path: Path, capsys: Captured) -> None:
    """Whatever command prints it, to people or in a page."""
    source, page = saying(write_v2(tmp_path / "evil\x1b[2J"), 1, EVIL), tmp_path / "page.html"
    places = ["--lake", str(tmp_path / "lake"), "--home", str(tmp_path / "home")]
    listed = tmp_path / "labels\x9b.jsonl"
    write_lines(listed, [{"episode": EVIL, "instruction": EVIL}])
    ingest(source, tmp_path / "lake/datasets/cart")
    told, silent = 0, []
    for command in (
        ["doctor", str(source)],
        ["ingest", str(source), "--dataset", "cart", "--embodiment", "metaworld_sawyer"],
        ["show", "cart"],
        ["show", "cart", "--episode", "1"],
        ["show", "cart", "--source-episode", f"{EVIL}:1"],
        ["show", "cart", "--html", str(page)],
        ["doctor", "cart"],
        ["view", "cart", "some", "--where", "length > 8"],
        ["view", "cart", "more", "--where", f"length > '{EVIL}'"],
        ["view", "cart", "third", "--where", f"instruction != '{EVIL}'"],
        ["views", "cart"],
        ["relabel", "cart", "--episode", "0", "--instruction", EVIL + "!"],
        ["relabel", "cart", "--episode", EVIL, "--instruction", "go"],
        ["relabel", "cart", "--from", str(listed)],
        ["show", "cart"],
        ["ls"],
        ["plan", "tiny", "--set", f"name={EVIL}"],
        ["plan", "tiny", "--set", "collect=null", "--set", f"ingest.source={source}"],
        [EVIL],
    ):
        main([*command, *places])
        shown = capsys.readouterr()
        assert not steering(shown.out) | steering(shown.err), command
        told += "\\x1b" in shown.out + shown.err
        silent += [] if shown.out + shown.err else [command]
    assert told >= 12 and not silent
    assert not steering(page.read_text()) - {"\t"} and "owned" in page.read_text()


def test_a_message_of_several_lines_forges_none_of_the_error(capsys: Captured) -> None:
    Screen().error(UserError("LAKE-181", "no\n  next: curl", where="a\n  done: all", next_step="go"))
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith(("  next:", "  done:"))] == ["  next: go"]


def test_machines_get_json_whatever_the_numbers(capsys: Captured) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    Screen(as_json=True).answer({"a": [float("nan"), (1.5, float("inf"))], "b": {"c": float("-inf"), "d": "NaN\ud800"}})
    found = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert found == {"a": [None, [1.5, None]], "b": {"c": None, "d": "NaN\ud800"}}


def test_a_table_holds_text(capsys: Captured) -> None:
    Screen().table(("what", "how many"), [(EVIL, "3")], right=("how many",))
    shown = capsys.readouterr().out
    assert not steering(shown) and "[/bold]" in shown and "\\x1b]0;owned" in shown.replace("\n", "")
