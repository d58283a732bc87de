"""The flow on a real, temporary Prefect server: a finished loop is served stage by stage from the lake."""

import shutil
from pathlib import Path

from data_lake.refs import ModelVersionRef
from flows.train_loop import train_loop
from tasks.catalogue import STAGES
from tasks.events import read_events


def test_a_finished_loop_answers_from_the_lake(smoke_lake: tuple[Path, Path], tmp_path: Path) -> None:
    lake, home = tmp_path / "lake", tmp_path / ".vlaloop"
    shutil.copytree(smoke_lake[0], lake)
    shutil.copytree(smoke_lake[1], home)
    version = train_loop("smoke", lake=str(lake), home=str(home))
    assert isinstance(version, ModelVersionRef) and version.name == "smoke"
    (run_id,) = {path.parent.name for path in home.glob("runs/*/executor.json")}
    cached = [event["stage"] for event in read_events(home, run_id) if event["event"] == "cached"]
    assert cached == list(STAGES)
