"""A session is one run: opened again by a Retry, it is the same one."""

import json
from pathlib import Path

from flows.recipe import load
from flows.session import open_session
from tasks.events import read_events
from tasks.runtime import Runtime
from tests.data_lake.recordings import write_v2


def test_a_retry_opens_the_same_session_with_the_same_snapshot(tmp_path: Path) -> None:
    source = write_v2(tmp_path / "source")
    runtime = Runtime(lake=tmp_path / "lake", home=tmp_path / "home", run_id="run-1", label="gr1")
    recipe = load("gr1", [f"ingest.source={source}"])
    first = open_session(recipe, runtime)
    seen = first.source()
    (source / "meta/added.json").write_text("{}")
    again = open_session(recipe, runtime)
    assert seen is not None and again.source() == seen
    later = open_session(recipe, Runtime(lake=tmp_path / "lake", home=tmp_path / "home", run_id="run-2"))
    assert later.source() != seen
    stored = json.loads((tmp_path / "lake/runs/run-1/recipe.json").read_text())
    assert stored["recipe"]["ingest"]["source"] == str(source)


def test_a_session_tells_when_it_ends(tmp_path: Path) -> None:
    runtime = Runtime(lake=tmp_path / "lake", home=tmp_path / "home", run_id="run-1", label="tiny")
    session = open_session(load("tiny"), runtime)
    assert session.source() is None  # it collects
    session.finish()
    assert [event["event"] for event in read_events(tmp_path / "home", "run-1")] == ["run", "finished"]
    assert session.run.is_finished()
