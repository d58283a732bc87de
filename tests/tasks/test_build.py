"""A stage is built once per slot, whoever asks and however builders die."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from data_lake.files import sha256
from data_lake.reasons import reasons
from data_lake.refs import SourceRef
from data_lake.runs import Run
from data_lake.store import damaged, records, revoke
from tasks.build import Stage, build
from tasks.events import read_events
from tasks.runtime import Runtime
from tests.tasks.fake_stages import CountSpec
from tests.waiting import eventually

COUNT = Stage(fn="tests.tasks.fake_stages:count", version=1, retries=0)
ROOT = Path(__file__).parents[2]


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    return Runtime(lake=tmp_path / "lake", home=tmp_path / "home", run_id="run-1", label="x", lease_s=1.0)


def events_of(runtime: Runtime) -> list[str]:
    return [event["event"] for event in read_events(runtime.home, runtime.run_id)]


def test_built_once_then_served_from_the_record(runtime: Runtime) -> None:
    first = build(COUNT, CountSpec(steps=2), runtime=runtime)
    second = build(COUNT, CountSpec(steps=2), runtime=replace(runtime, run_id="run-2"))
    assert (first.is_cached, second.is_cached) == (False, True)
    assert first.ref == second.ref
    assert events_of(runtime) == ["start", "note", "progress", "progress", "summary", "built"]
    assert events_of(replace(runtime, run_id="run-2")) == ["cached"]


def test_the_record_vouches_for_every_file(runtime: Runtime) -> None:
    record = build(COUNT, CountSpec(steps=2), runtime=runtime).record
    assert sorted(record["files"]) == ["attempts/1/0.txt", "attempts/1/1.txt"]
    assert damaged(runtime.lake, record) == []
    file = runtime.lake / "count" / record["fingerprint"] / "attempts/1/0.txt"
    file.write_text("2\n")
    assert damaged(runtime.lake, record) == ["attempts/1/0.txt: content differs from what its record vouches for"]
    file.unlink()
    assert damaged(runtime.lake, record) == ["attempts/1/0.txt: missing"]


def test_runtime_is_not_identity_and_spec_inputs_and_version_are(runtime: Runtime) -> None:
    spec = CountSpec(steps=1)
    ref = build(COUNT, spec, runtime=runtime).ref
    elsewhere = replace(runtime, workers=64, launcher="torchrun", processes=8, label="renamed")
    assert build(COUNT, spec, runtime=elsewhere).is_cached
    assert not build(COUNT, replace(spec, steps=2), runtime=runtime).is_cached
    assert not build(COUNT, spec, ref, runtime=runtime).is_cached
    assert not build(replace(COUNT, version=2), spec, runtime=runtime).is_cached


def test_reasons_name_what_changed(runtime: Runtime) -> None:
    ref = build(COUNT, CountSpec(steps=1), runtime=runtime).ref
    lake = runtime.lake
    assert reasons(COUNT.slot(CountSpec(steps=2), lake=lake), "x") == ["steps: 1 -> 2"]
    assert reasons(COUNT.slot(CountSpec(steps=2), lake=lake), "other") == ["first build"]
    assert reasons(replace(COUNT, version=2).slot(CountSpec(steps=1), lake=lake), "x") == ["version 1 -> 2"]
    assert reasons(COUNT.slot(CountSpec(steps=1), ref, lake=lake), "x") == ["upstream"]
    build(COUNT, CountSpec(steps=2, pause_s=0.001), runtime=runtime)  # a newer one that differs in more
    assert reasons(COUNT.slot(CountSpec(steps=3), lake=lake), "x") == ["steps: 1 -> 3"]


def test_a_failure_leaves_the_slot_to_the_next_attempt_which_continues(runtime: Runtime, tmp_path: Path) -> None:
    spec = CountSpec(steps=2, fail="bug", mend=str(tmp_path / "mended"))
    with pytest.raises(ValueError, match="broken"):
        build(COUNT, spec, runtime=runtime)
    assert records(runtime.lake) == []
    (tmp_path / "mended").touch()
    started = time.monotonic()
    assert build(COUNT, spec, runtime=runtime).record["attempt"] == 2
    assert time.monotonic() - started < runtime.lease_s  # the failed builder had let go
    assert events_of(runtime)[:2] == ["start", "failed"]


def test_injected_failure_happens_once_per_run(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLALOOP_FAIL_STAGE", "count")
    with pytest.raises(RuntimeError, match="told to fail"):
        build(COUNT, CountSpec(steps=1), runtime=runtime)
    assert not build(COUNT, CountSpec(steps=1), runtime=runtime).is_cached


def test_revoking_moves_the_stage_and_what_depends_on_it(runtime: Runtime) -> None:
    spec = CountSpec(steps=1)
    first = build(COUNT, spec, runtime=runtime)
    below = build(COUNT, spec, first.ref, runtime=runtime)
    slot = COUNT.slot(spec, lake=runtime.lake)
    assert revoke(slot, why="lens was dirty", who="me")
    assert not revoke(slot, why="again", who="me")
    moved = COUNT.slot(spec, lake=runtime.lake)
    assert moved.fingerprint != slot.fingerprint
    assert "revoked: lens was dirty" in reasons(moved, "x")
    again = build(COUNT, spec, runtime=runtime)
    assert not again.is_cached and not build(COUNT, spec, again.ref, runtime=runtime).is_cached
    assert build(COUNT, spec, first.ref, runtime=runtime).ref == below.ref  # nothing was overwritten
    assert damaged(runtime.lake, first.record) == []
    assert revoke(moved, why="still dirty", who="me")
    assert not build(COUNT, spec, runtime=runtime).is_cached


def test_two_builders_one_builds_and_the_other_waits_for_it(runtime: Runtime) -> None:
    spec = CountSpec(steps=5, pause_s=0.1)
    built = []
    other = replace(runtime, run_id="run-2")
    threads = [
        threading.Thread(target=lambda each=each: built.append(build(COUNT, spec, runtime=each)))
        for each in (runtime, other)
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join()
    assert sorted(each.is_cached for each in built) == [False, True]
    waited = next(event for event in read_events(other.home, "run-2") if event["event"] == "waiting")
    assert "waits for run run-1" in waited["text"] and str(os.getpid()) in waited["text"]


BUILDER = """
import sys
from pathlib import Path
from tasks.build import Stage, build
from tasks.runtime import Runtime
from tests.tasks.fake_stages import CountSpec
lake, home, run_id = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
runtime = Runtime(lake=lake, home=home, run_id=run_id, label="x", lease_s=1.0)
stage = Stage(fn="tests.tasks.fake_stages:count", version=1, retries=0)
print("built" if not build(stage, CountSpec(steps=8, pause_s=0.1), runtime=runtime).is_cached else "cached")
"""


def start_builder(runtime: Runtime, run_id: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BUILDER, str(runtime.lake), str(runtime.home), run_id]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def wait_for_files(runtime: Runtime, number: int) -> None:
    eventually(lambda: len(list(runtime.lake.glob("count/*/attempts/1/*.txt"))) >= number, every_s=0.01)


def test_kill_9_and_rerun_continues_what_was_there(runtime: Runtime) -> None:
    killed = start_builder(runtime, "killed")
    wait_for_files(runtime, 3)
    killed.kill()
    killed.wait()
    spec = CountSpec(steps=8, pause_s=0.1)
    record = build(COUNT, spec, runtime=runtime).record
    texts = [(runtime.lake / "count" / record["fingerprint"] / name).read_text() for name in sorted(record["files"])]
    assert record["attempt"] == 2
    assert texts[0] == "1\n" and texts[-1] == "2\n"


def test_a_builder_that_wakes_after_it_was_taken_over_changes_nothing(runtime: Runtime) -> None:
    sleeper = start_builder(runtime, "sleeper")
    wait_for_files(runtime, 2)
    sleeper.send_signal(signal.SIGSTOP)
    record = build(COUNT, CountSpec(steps=8, pause_s=0.1), runtime=runtime).record
    slot = runtime.lake / "count" / record["fingerprint"]
    vouched = {name: sha256(slot / name) for name in ["record.json", *record["files"]]}
    sleeper.send_signal(signal.SIGCONT)
    out, err = sleeper.communicate(timeout=20)
    assert (sleeper.returncode, out) == (0, "cached\n"), err
    assert {name: sha256(slot / name) for name in vouched} == vouched
    assert json.loads((slot / "record.json").read_text())["attempt"] == 2


def test_a_run_keeps_its_own_snapshot(runtime: Runtime) -> None:
    def at(digest: str) -> SourceRef:
        return SourceRef(uri="s", fingerprint=digest, path="/x", num_files=1, num_bytes=1)

    run = Run(lake=runtime.lake, run_id="run-1")
    assert run.source(lambda: at("old")).fingerprint == "old"
    assert run.source(lambda: at("new")).fingerprint == "old"
    assert Run(lake=runtime.lake, run_id="run-2").source(lambda: at("new")).fingerprint == "new"
