"""Runtime is where and how: it resolves lake-relative refs and passes reports on."""

from pathlib import Path

from tasks.runtime import Note, Runtime


def test_refs_are_relative_to_the_lake(tmp_path: Path) -> None:
    heard: list[object] = []
    runtime = Runtime(lake=tmp_path, home=tmp_path, run_id="r", sink=heard.append)
    runtime.report(Note(text="hello"))
    assert runtime.path("train/x") == tmp_path / "train" / "x"
    assert heard == [Note(text="hello")]
