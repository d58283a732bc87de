"""The inbox: what is complete is taken in once, and enough new episodes start one loop, whatever happens in between."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from data_lake.tables import dataset_root, read_manifest
from errors import UserError
from flows.api import PrefectApi
from flows.ingest_new import inbox_recipe, ingest_new, ready
from flows.places import Places
from tests.data_lake.recordings import write_v2
from tests.flows.inbox_recipe import NAME


def test_only_complete_and_settled_folders_are_ready(tmp_path: Path) -> None:
    for name in ("b", "a", "still-copied"):
        write_v2(tmp_path / name, (5,))
    (tmp_path / "no-card").mkdir()
    (tmp_path / "file.txt").touch()
    write_v2(tmp_path / ".hidden", (5,))
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.utime(path, (1000, 1000))
    os.utime(tmp_path / "still-copied" / "meta", (1090, 1090))
    assert [path.name for path in ready(tmp_path, settle_s=30, now=1100)] == ["a", "b"]
    assert [path.name for path in ready(tmp_path, settle_s=30, now=1120)] == ["a", "b", "still-copied"]
    assert ready(tmp_path / "nothing", settle_s=30, now=1100) == []


def test_a_recipe_that_collects_has_no_inbox() -> None:
    with pytest.raises(UserError) as refused:
        inbox_recipe("tiny")
    assert refused.value.code == "INBOX-001"


@pytest.fixture
def paused(api: PrefectApi) -> Iterator[PrefectApi]:
    """The worker leaves what is started; only that it was started is looked at."""
    api.call("PATCH", "/work_pools/vlaloop", {"is_paused": True})
    yield api
    for run in api.flow_runs({"state": {"type": {"any_": ["SCHEDULED"]}}}, flows=["train-loop"]):
        if run["parameters"]["recipe"] == NAME:
            api.set_state(run["id"], "CANCELLED", "Cancelled", "test")
    api.call("PATCH", "/work_pools/vlaloop", {"is_paused": False})


def test_new_folders_come_in_once_and_start_one_loop(services: Places, paused: PrefectApi, tmp_path: Path) -> None:
    inbox, where = tmp_path / "inbox", {"lake": str(tmp_path / "lake"), "home": str(services.home)}

    def look(enough: int) -> str:
        state = ingest_new(NAME, str(inbox), enough, 0.0, **where, return_state=True)
        assert state.is_completed()
        return state.message

    def loops() -> list[dict[str, object]]:
        runs = paused.flow_runs({}, flows=["train-loop"], limit=200)
        return [run["parameters"] for run in runs if run["parameters"].get("lake") == where["lake"]]

    assert look(3) == "nothing has come in yet"
    write_v2(inbox / "monday", (8, 12))
    assert look(3) == "2 new episodes, 3 start a loop"
    write_v2(inbox / "tuesday", (8, 12, 10))  # two of them have been here on monday
    assert look(3).startswith("3 new episodes: loop ")
    manifest = read_manifest(dataset_root(tmp_path / "lake", "cart"))
    assert manifest is not None and manifest.num_episodes == 3
    assert look(1) == "0 new episodes, 1 start a loop"
    (started,) = loops()
    assert started["changes"] == {"ingest": {"source": "lake:cart"}}
    # a crash between starting and remembering: the same version starts the same run
    for mark in (tmp_path / "lake" / "inbox" / "cart").glob("*.json"):
        assert json.loads(mark.read_text())["episodes"] == 3
        mark.unlink()
    assert look(1).startswith("3 new episodes: loop ")
    assert len(loops()) == 1


def test_one_bad_recording_does_not_keep_the_others_out(services: Places, tmp_path: Path) -> None:
    write_v2(tmp_path / "inbox" / "good", (8,))
    bad = write_v2(tmp_path / "inbox" / "bad", (8,))
    next(bad.rglob("*.parquet")).write_bytes(b"torn")
    where = {"lake": str(tmp_path / "lake"), "home": str(services.home)}
    state = ingest_new(NAME, str(tmp_path / "inbox"), 100, 0.0, **where, return_state=True)
    assert (state.name, state.type.value) == ("Refused", "COMPLETED")
    assert "1 new episodes" in state.message and "bad: LAKE-001" in state.message
