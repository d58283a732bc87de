"""The quickstart notebook runs from top to bottom on a lake where the smoke loop is built."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from flows.recipe import load


def test_quickstart_runs(
    root: Path, smoke_lake: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(smoke_lake[0], tmp_path / "lake")
    shutil.copytree(smoke_lake[1], tmp_path / ".vlaloop")
    monkeypatch.setenv("VLALOOP_RECIPE", "smoke")
    monkeypatch.setenv("VLALOOP_LAKE", str(tmp_path / "lake"))
    notebook = nbformat.read(root / "notebooks" / "quickstart.ipynb", as_version=4)
    NotebookClient(notebook, timeout=200, kernel_name="python3", resources={"metadata": {"path": str(root)}}).execute()
    texts = "".join(str(output) for cell in notebook.cells for output in cell.get("outputs", []))
    assert "ModelVersionRef" in texts and "<img alt='episode 0: press the button" in texts
    assert "train.learning_rate: 0.001 -> 0.0005" in texts
    assert f"(1, {load('smoke').policy.action_horizon}, 4)" in texts
