"""The metric lines of a training run as readers see them while it writes."""

from pathlib import Path

import pytest

from tasks.spool import TAIL_BYTES, last_line, read_lines


def test_there_is_nothing_before_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    assert (read_lines(path), last_line(path)) == ([], None)
    path.touch()
    assert (read_lines(path), last_line(path)) == ([], None)


@pytest.mark.parametrize("half", ["", '{"step": 9', '{"step": 9}'])
def test_a_line_counts_once_it_is_complete(tmp_path: Path, half: str) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0}\n{"step": 1}\n' + half)
    assert read_lines(path) == [{"step": 0}, {"step": 1}]
    assert last_line(path) == {"step": 1}


def test_the_last_line_of_a_long_file(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(f'{{"step": {step}}}\n' for step in range(2000)))
    assert path.stat().st_size > 2 * TAIL_BYTES
    assert last_line(path) == {"step": 1999}
