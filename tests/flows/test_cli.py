"""The command line: exit statuses, one paragraph per error, one JSON object on the last line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from errors import Transient
from flows.cli import main
from tests.conftest import ROOT

Captured = pytest.CaptureFixture[str]


def machine(capsys: Captured) -> Any:
    """The object on the last line of standard output."""
    return json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["plan", "tinny"], "NAME-001"),
        (["plan", "tiny", "--set", "train.steps=3"], "RECIPE-002"),
        (["plan", "tiny", "--set", "train.num_steps=many"], "RECIPE-003"),
        (["plan", "tiny", "--set", "train.num_steps"], "RECIPE-004"),
        (["plan", "gr1"], "RECIPE-005"),
        (["plan", "nothing.yaml"], "RECIPE-001"),
        (["run", "tiny", "--profile", "laptops"], "PROFILE-001"),
        (["run", "tiny", "--rebuild", "train"], "CLI-002"),
        (["run", "tiny", "--rebuild", "trains", "--why", "bad"], "CLI-003"),
        (["show", "train/77"], "CLI-004"),
        (["report", "tiny"], "CLI-005"),
        (["bench", "nothing"], "CLI-006"),
        (["plan", "--nonsense"], "CLI-001"),
        (["ingest", "folder"], "CLI-001"),
        (["nonsense"], "CLI-001"),
        (["gc", "--grace-s", "-1"], "CLI-001"),
    ],
)
def test_wrong_use_is_one_paragraph_and_status_2(
    arguments: list[str], code: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLALOOP_LAKE", str(tmp_path / "lake"))
    assert main([*arguments, "--json"]) == 2
    shown = capsys.readouterr()
    told = json.loads(shown.out.splitlines()[-1])["error"]
    assert told["code"] == code
    assert set(told) == {"code", "message", "where", "next"}
    assert shown.err.count("error ") == 1 and "Traceback" not in shown.err
    assert f"error {code}: {told['message']}" in shown.err


def test_a_close_name_is_suggested(tmp_path: Path, capsys: Captured) -> None:
    assert main(["plan", "tinny", "--lake", str(tmp_path)]) == 2
    assert "did you mean 'tiny'?" in capsys.readouterr().err


def test_failure_is_status_1(tmp_path: Path, capsys: Captured) -> None:
    """No such source: nothing that the command line could have known."""
    arguments = ["plan", "gr1", "--set", f"ingest.source={tmp_path / 'nothing'}", "--json"]
    assert main([*arguments, "--lake", str(tmp_path)]) == 1
    assert machine(capsys)["error"]["code"] == "LAKE-002"


def test_what_a_retry_may_cure_says_so(tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when gc took the files of a command that no flow retries."""

    def disturbed(*_: object) -> int:
        raise Transient("frames.lance/data/1.lance was removed while this writer worked")

    monkeypatch.setattr("flows.commands.lake.ls", disturbed)
    assert main(["ls", "--json", "--lake", str(tmp_path)]) == 1
    told = machine(capsys)["error"]
    assert told["code"] == "LAKE-245" and "1.lance was removed" in told["message"]
    assert "the same command again" in told["next"] and "--grace-s" in told["next"]
    with pytest.raises(Transient):
        main(["ls", "--debug", "--lake", str(tmp_path)])


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="unknown recipe"):
        main(["plan", "tinny", "--debug", "--lake", str(tmp_path)])


def test_no_arguments_is_help(capsys: Captured) -> None:
    assert main([]) == 0
    assert "Commands" in capsys.readouterr().out


def test_quiet_says_nothing(tmp_path: Path, capsys: Captured) -> None:
    assert main(["ls", "-q", "--lake", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "")


def test_json_alone_on_standard_output(tmp_path: Path, capsys: Captured) -> None:
    """Everything for people goes to standard error."""
    assert main(["gc", "--json", "--lake", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {
        "command": "gc",
        "ok": True,
        "result": {"removed": [], "bytes": 0, "dry_run": False},
    }
    assert shown.err == "nothing to remove\n"


def test_a_broken_pipe_of_the_shell_is_no_traceback(tmp_path: Path) -> None:
    """`vlaloop ls | head -0`."""
    command = f"{sys.executable} -m flows.cli --help | true"
    ended = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in ended.stderr
