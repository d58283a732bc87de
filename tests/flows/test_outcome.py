"""What a run's object says: built by this run, found, failed or never reached."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows.outcome import Outcome, closing_lines, next_steps, result, success_table
from flows.plan import PlannedStage, make_plan
from flows.recipe import load
from flows.services import ledger
from flows.services.alive import Started
from flows.services.ledger import Ledger, Service
from tasks.promotion import Move, audit_log
from tests.tasks import fabricated


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("outcome")
    fabricated.run(root / "lake", root / "home", "tiny")
    return root / "lake"


def event(stage: str, name: str, t: float, **fields: Any) -> dict[str, Any]:
    return {"t": t, "stage": stage, "slot": "x", "event": name, **fields}


def outcome(lake: Path, *events: dict[str, Any], changes: tuple[str, ...] = ()) -> Outcome:
    planned: list[PlannedStage] = make_plan(load("tiny", changes), lake, None)
    return Outcome(recipe="tiny", lake=lake, home=lake.parent, planned=planned, events=events)


def test_states_of_stages(lake: Path) -> None:
    """train was tried and failed; what follows was never reached; what precedes was there."""
    events = (
        event("pack", "cached", 10.0, line="", seconds=0.0),
        event("train", "start", 11.0, why=["train.seed: 0 -> 1"]),
        event("train", "failed", 14.0, error="ValueError: x"),
    )
    found = outcome(lake, *events, changes=("train.seed=77",)).as_json()
    assert {stage["name"]: stage["state"] for stage in found["stages"]} == {
        **dict.fromkeys(("collect", "ingest", "preprocess", "pack"), "cached"),
        "train": "failed",
        **dict.fromkeys(("export", "evaluate", "register"), "skipped"),
    }
    assert next(stage for stage in found["stages"] if stage["name"] == "train")["why"] == ["train.seed: 0 -> 1"]
    assert found["seconds"] == 4.0
    assert found["result"]["success"] == {}


def test_built_stages_carry_their_time(lake: Path) -> None:
    events = (event("train", "start", 1.0, why=["first build"]), event("train", "built", 9.5, line="x", seconds=8.25))
    found = outcome(lake, *events)
    stage = next(each for each in found.as_json()["stages"] if each["name"] == "train")
    assert (stage["state"], stage["seconds"], stage["why"]) == ("built", 8.25, ["first build"])
    assert found.as_json()["cpu_seconds"] >= 0
    assert any("train 8s · 8s in all" in line for line in closing_lines(found))


def test_table_of_success(lake: Path) -> None:
    found = outcome(lake)
    table = success_table(found.refs)
    assert table is not None and table.row_count == len(fabricated.TASKS)
    assert success_table({}) is None


def test_rejected_is_what_the_gate_says(lake: Path) -> None:
    assert not outcome(lake).is_rejected
    refused = {**outcome(lake).refs["register"], "alias": None, "accepted": False}
    assert result({"register": refused}, None)["alias"] is None


def test_a_version_that_was_replaced_does_not_call_itself_champion(tmp_path: Path) -> None:
    fabricated.run(tmp_path / "lake", tmp_path / "home", "tiny")
    found = outcome(tmp_path / "lake")
    assert any("tiny v1 → champion" in line for line in closing_lines(found))
    later = Move(action="champion", version=2, fingerprint="f2", before=1, who="r", why="better", at="")
    assert audit_log(tmp_path / "lake", "tiny").append(2, later)
    assert found.as_json()["result"]["alias"] == "previous"
    assert any("tiny v1 was champion, is previous now" in line for line in closing_lines(found))


def test_addresses_of_running_services_are_shown(lake: Path, tmp_path: Path) -> None:
    found = replace(outcome(lake), home=tmp_path)
    assert any(line.endswith("./vlaloop up") for line in next_steps(found))
    mine = Service(name="prefect", started=Started.now(os.getpid()), url="http://127.0.0.1:4200", log="")
    ledger.write(tmp_path, Ledger(services=(mine,)))
    assert any("prefect http://127.0.0.1:4200" in line for line in next_steps(found))
