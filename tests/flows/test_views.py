"""`view` and `views`: what is kept is shown before it is saved; what cannot be answered saves nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from flows.cli import main
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import ingest

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    ingest(write_v2(tmp_path / "source", (8, 12, 10)), tmp_path / "lake" / "datasets" / "cart")
    return tmp_path / "lake"


def given(lake: Path, capsys: Captured, *arguments: str, status: int = 0) -> tuple[Any, str]:
    """The object for machines, and what people see."""
    assert main([*arguments, "--lake", str(lake), "--home", str(lake.parent / "home"), "--json"]) == status
    shown = capsys.readouterr()
    return json.loads(shown.out.splitlines()[-1]), shown.err


def test_a_view_is_shown_saved_and_listed(lake: Path, capsys: Captured) -> None:
    found, shown = given(lake, capsys, "view", "cart", "long", "--where", "length > 8", "--exclude", "source:2")
    result = found["result"]
    assert (found["command"], found["ok"], result["revision"]) == ("view", True, 1)
    assert (result["kept"], result["of"]) == ({"episodes": 1, "frames": 12}, {"episodes": 3, "frames": 30})
    assert result["episode_indices"] == [1] and result["dataset"] == "cart@1"
    assert "1 of 3 episodes of cart@1 · 12 of 30 frames" in shown
    assert "use: --set ingest.source=lake:cart/long" in shown
    again, shown = given(lake, capsys, "view", "cart", "long")
    assert again["result"] == result and "replaces" not in shown
    (listed,) = given(lake, capsys, "views", "cart")[0]["result"]
    assert listed["choice"] == {"where": "length > 8", "episodes": "", "exclude": "source:2"}


def test_a_choice_that_takes_the_place_of_another_says_of_which(lake: Path, capsys: Captured) -> None:
    given(lake, capsys, "view", "cart", "long", "--where", "length > 8")
    for time in range(2):  # the second time it is the choice that is saved already
        changed = given(lake, capsys, "view", "cart", "long", "--where", "length > 10")
        assert changed[0]["result"]["revision"] == 2
        assert ("replaces long@1: where length > 8" in changed[1]) is (time == 0)


@pytest.mark.parametrize(
    ("choice", "code"),
    [
        (["--where", "lenth > 8"], "LAKE-206"),
        (["--where", "length > 99"], "LAKE-209"),
        (["--episodes", "9"], "LAKE-208"),
        (["--exclude", "a"], "LAKE-207"),
        ([], "LAKE-205"),
    ],
)
def test_what_keeps_nothing_or_makes_no_sense_is_not_saved(
    lake: Path, capsys: Captured, choice: list[str], code: str
) -> None:
    found, _ = given(lake, capsys, "view", "cart", "bad", *choice, status=1)
    assert found["error"]["code"] == code
    assert given(lake, capsys, "views", "cart")[0]["result"] == []
    assert not (lake / "datasets/cart/views").exists()
