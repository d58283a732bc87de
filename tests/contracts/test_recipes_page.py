"""docs/recipes.md: its recipe is one, for recordings of such a robot, and as YAML it is the same."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from flows.recipe import load
from tests.data_lake.recordings import write_v2


@pytest.fixture
def folder(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """With the page's module, importable as it says."""
    (written,) = re.findall(r"```python\n(.*?)```", (root / "docs" / "recipes.md").read_text(), re.DOTALL)
    (tmp_path / "my_lab.py").write_text(written)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("my_lab", None)


def test_as_yaml_it_is_the_same(folder: Path) -> None:
    recipe = load("my_lab:RECIPE")
    text = yaml.safe_dump(json.loads(json.dumps(dataclasses.asdict(recipe))))
    (folder / "my.yaml").write_text(text)
    assert load(str(folder / "my.yaml")) == recipe


@pytest.mark.slow
def test_it_runs_up_to_training(folder: Path, root: Path) -> None:
    source = write_v2(folder / "source", (12, 14, 16))
    command = [str(root / "vlaloop"), "run", "my_lab:RECIPE", "--until", "pack", "--json"]
    command += ["--set", f"ingest.source={source}", "--lake", str(folder / "lake"), "--home", str(folder / "home")]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(folder)}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    stages = {stage["name"]: stage["ref"] for stage in json.loads(done.stdout.splitlines()[-1])["stages"]}
    assert list(stages) == ["ingest", "preprocess", "pack"]
    assert (stages["preprocess"]["num_samples"], stages["preprocess"]["num_heldout"]) == (42, 16)
