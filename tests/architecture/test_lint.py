"""ruff and pyright find nothing, and no exception to them is unexplained."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, all_files


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_ruff_finds_nothing() -> None:
    ended = run(sys.executable, "-m", "ruff", "check", "--no-cache", "--output-format=concise", ".")
    assert ended.returncode == 0, ended.stdout


def test_ruff_would_format_nothing() -> None:
    ended = run(sys.executable, "-m", "ruff", "format", "--no-cache", "--check", ".")
    assert ended.returncode == 0, ended.stdout


@pytest.mark.slow
def test_pyright_finds_nothing() -> None:
    ended = run(sys.executable, "-m", "pyright")
    assert ended.returncode == 0, ended.stdout[-6000:]


def test_every_exception_names_its_rule() -> None:
    """`noqa` and `type: ignore` without a rule would hide the next fault too."""
    blanket = re.compile(r"#\s*noqa(?!:\s*[A-Z]+\d)|#\s*type:\s*ignore(?!\[)|#\s*pyright:\s*ignore(?!\[)")
    strays = [
        f"{path}:{number}"
        for path in all_files()
        if path != Path("tests/architecture/test_lint.py")
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1)
        if blanket.search(line)
    ]
    assert not strays, strays


def test_no_unfinished_marks() -> None:
    """What is to be done stands in an issue, not in the code."""
    marks = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b")
    strays = [
        f"{path}:{number}"
        for path in all_files()
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1)
        if marks.search(line)
    ]
    assert not strays, strays
