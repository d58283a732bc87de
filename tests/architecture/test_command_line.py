"""The command line is frozen, every command speaks JSON, and `--help` loads nothing heavy."""

import json
import subprocess
import sys

from tests.architecture.command_line import GOLDEN, command_line
from tests.architecture.tree import ROOT

COMMANDS = {"run", "plan", "ls", "show", "doctor", "ingest", "report", "up", "down", "bench", "test", "gc"}
HEAVY = {
    *("av", "daft", "jinja2", "lance", "metaworld", "mlflow", "mujoco", "numpy", "pandas", "playwright", "prefect"),
    *("pyarrow", "pydantic", "safetensors", "scipy", "sentencepiece", "torch"),
}


def loaded(program: str) -> set[str]:
    """Top-level modules that a fresh interpreter has after running `program`."""
    ended = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{program}\nimport sys; print('LOADED', *{{name.split('.')[0] for name in sys.modules}})",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ended.stdout.splitlines()[-1].split()[1:])


def test_help_loads_nothing_heavy() -> None:
    program = """
import sys
from flows.cli import app
sys.argv = ["vlaloop", "--help"]
try:
    app()
except SystemExit as ended:
    assert not ended.code, ended.code
"""
    modules = loaded(program)
    assert "flows" in modules
    assert not modules & HEAVY, f"./vlaloop --help loads {sorted(modules & HEAVY)}"


def test_heavy_modules_would_be_seen() -> None:
    assert "numpy" in loaded("import numpy")


def test_command_line_is_frozen() -> None:
    """`python -m tests.architecture.command_line --write` renews the golden file after a change on purpose."""
    assert command_line() == json.loads(GOLDEN.read_text())


def test_every_command_is_there_and_speaks_json() -> None:
    commands = command_line()["commands"]
    assert set(commands) >= COMMANDS
    silent = [name for name, item in commands.items() if not any("--json" in p["names"] for p in item["parameters"])]
    assert not silent, f"without --json: {silent}"
