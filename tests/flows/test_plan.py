"""The plan of a finished loop, and of one changed field: exactly what depends on it, with the reason by field."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from data_lake.store import revoke
from errors import UserError
from flows.plan import make_plan, require_source
from flows.recipe import load
from tasks.catalogue import LOOP


def states(lake: Path, *changes: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {row.stage.name: (row.state, row.why) for row in make_plan(load("smoke", changes), lake, None)}


def built(lake: Path, *changes: str) -> list[str]:
    return [name for name, (state, _) in states(lake, *changes).items() if state == "build"]


def test_an_empty_lake_builds_everything_and_planning_creates_nothing(tmp_path: Path) -> None:
    assert built(tmp_path / "lake") == list(LOOP)
    assert states(tmp_path / "lake")["collect"][1] == ("first build",)
    assert not (tmp_path / "lake").exists()


def test_a_finished_loop_is_done_everywhere(smoke_lake: tuple[Path, Path]) -> None:
    assert built(smoke_lake[0]) == []
    assert not any(row.code_differs for row in make_plan(load("smoke"), smoke_lake[0], None))


@pytest.mark.parametrize(
    ("change", "first", "reason"),
    [
        ("train.learning_rate=0.0005", "train", "train.learning_rate: 0.001 -> 0.0005"),
        ("policy.action_horizon=4", "pack", "policy.action_horizon: 8 -> 4"),
        ("preprocess.sample_stride=8", "preprocess", "preprocess.sample_stride: 4 -> 8"),
        ("collect.white_noise=0.2", "collect", "collect.white_noise: 0.15 -> 0.2"),
        ("export.num_samples=4", "export", "export.num_samples: 8 -> 4"),
        ("evaluate.episodes_per_task=3", "evaluate", "evaluate.episodes_per_task: 2 -> 3"),
        ("gate.min_score=0.5", "register", "gate.min_score: 0.0 -> 0.5"),
    ],
)
def test_one_changed_field_rebuilds_exactly_what_depends_on_it(
    smoke_lake: tuple[Path, Path], change: str, first: str, reason: str
) -> None:
    order = list(LOOP)
    assert built(smoke_lake[0], change) == order[order.index(first) :]
    assert reason in states(smoke_lake[0], change)[first][1]
    later = [states(smoke_lake[0], change)[name][1] for name in order[order.index(first) + 1 :]]
    assert all("upstream" in why for why in later)


def test_another_name_of_the_data_set_is_another_ingest_of_the_same_content(smoke_lake: tuple[Path, Path]) -> None:
    assert built(smoke_lake[0], "ingest.dataset=other") == ["ingest"]
    (why,) = states(smoke_lake[0], "ingest.dataset=other")["ingest"][1]
    assert why.startswith("ingest.dataset: ")


@pytest.mark.parametrize("label", ["train.checkpoint_every=5", "evaluate.num_videos=0"])
def test_labels_rebuild_nothing(smoke_lake: tuple[Path, Path], label: str) -> None:
    assert built(smoke_lake[0], label) == []


def test_changed_code_is_shown_and_rebuilds_nothing(smoke_lake: tuple[Path, Path], tmp_path: Path, root: Path) -> None:
    """In a copy of the project: new file times and a new comment are nothing, a changed line is said."""
    for package in ("data_lake", "model_core", "tasks", "flows"):
        shutil.copytree(root / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for module in ("errors.py", "lookup.py"):
        shutil.copy(root / module, tmp_path / module)  # not its times
    assert code_differs(tmp_path, smoke_lake) == []
    export = tmp_path / "tasks/export.py"
    export.write_text("# why\n" + export.read_text())
    assert code_differs(tmp_path, smoke_lake) == []
    export.write_text(export.read_text() + "\nCHANGED = True\n")
    assert code_differs(tmp_path, smoke_lake) == ["export"]


def code_differs(project: Path, smoke: tuple[Path, Path]) -> list[str]:
    places = ["--lake", str(smoke[0]), "--home", str(smoke[1])]
    command = [sys.executable, "-m", "flows.cli", "plan", "smoke", "--json", *places]
    environment = {**os.environ, "PYTHONPATH": str(project)}
    planned = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=True)
    stages = json.loads(planned.stdout.splitlines()[-1])["stages"]
    assert {stage["state"] for stage in stages} == {"done"}
    return [stage["name"] for stage in stages if stage["code_differs"]]


def test_a_revoked_record_says_why(smoke_lake: tuple[Path, Path], tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(smoke_lake[0], lake)
    train = next(row for row in make_plan(load("smoke"), lake, None) if row.stage.name == "train")
    assert train.slot is not None
    revoke(train.slot, why="the fan had stopped", who="me")
    assert built(lake) == ["train", "export", "evaluate", "register"]
    assert "revoked: the fan had stopped" in states(lake)["train"][1]


def test_a_recipe_without_episodes_is_told_how_to_name_them() -> None:
    assert require_source(load("tiny")) is None
    assert require_source(load("gr1", ["ingest.source=/x"])) == "/x"
    with pytest.raises(UserError, match="--set ingest.source=PATH"):
        require_source(load("gr1"))
