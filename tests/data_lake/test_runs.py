"""A run keeps its own snapshot of the world and remembers what it touched."""

from pathlib import Path

from data_lake.refs import SourceRef
from data_lake.runs import Run, runs
from data_lake.store import slot_of


def at(digest: str) -> SourceRef:
    return SourceRef(uri="s", fingerprint=digest, path="/x", num_files=1, num_bytes=1)


def test_the_world_is_looked_at_once_per_run(tmp_path: Path) -> None:
    run = Run(lake=tmp_path, run_id="run-1")
    assert run.source(lambda: at("old")).fingerprint == "old"
    assert run.source(lambda: at("new")).fingerprint == "old"
    assert Run(lake=tmp_path, run_id="run-2").source(lambda: at("new")).fingerprint == "new"
    assert [each.run_id for each in runs(tmp_path)] == ["run-1", "run-2"]


def test_touched_slots_and_the_end(tmp_path: Path) -> None:
    run = Run(lake=tmp_path, run_id="run-1")
    assert run.slots() == [] and not run.is_finished() and runs(tmp_path / "nowhere") == []
    slot = slot_of(tmp_path, "count", 1, {"steps": 1}, ())
    run.touch(slot)
    run.touch(slot)
    run.finish("x")
    assert run.slots() == [("count", slot.fingerprint)] and run.is_finished()
