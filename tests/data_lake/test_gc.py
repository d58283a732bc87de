"""gc takes what nothing reaches, and nothing else."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from data_lake.files import tree
from data_lake.gc import find_garbage, remove
from data_lake.runs import Run
from data_lake.store import begin, damaged
from tasks.build import Stage, build
from tasks.runtime import Runtime
from tests.tasks.fake_stages import CountSpec

COUNT = Stage(fn="tests.tasks.fake_stages:count", version=1, retries=0)


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    return Runtime(lake=tmp_path / "lake", home=tmp_path / "home", run_id="run-1", label="x", lease_s=1.0)


def fail_once(runtime: Runtime, tmp_path: Path) -> CountSpec:
    spec = CountSpec(steps=1, fail="bug", mend=str(tmp_path / "mended"))
    with pytest.raises(ValueError, match="broken"):
        build(COUNT, spec, runtime=runtime)
    (runtime.lake / "count" / COUNT.slot(spec, lake=runtime.lake).fingerprint / "attempts/1/half.txt").touch()
    (tmp_path / "mended").touch()
    return spec


def test_attempts_that_the_record_does_not_name_go(runtime: Runtime, tmp_path: Path) -> None:
    record = build(COUNT, fail_once(runtime, tmp_path), runtime=runtime).record
    slot = runtime.lake / "count" / record["fingerprint"]
    assert [each.path for each in find_garbage(runtime.lake, grace_s=0)] == [slot / "attempts/1"]
    remove(find_garbage(runtime.lake, grace_s=0))
    assert not (slot / "attempts/1").exists()
    assert damaged(runtime.lake, record) == []
    assert find_garbage(runtime.lake, grace_s=0) == []


def test_what_a_failed_run_needs_for_its_retry_stays_until_the_run_is_finished(
    runtime: Runtime, tmp_path: Path
) -> None:
    fail_once(runtime, tmp_path)
    assert find_garbage(runtime.lake, grace_s=0) == []
    Run(lake=runtime.lake, run_id="run-1").finish("x")
    assert len(find_garbage(runtime.lake, grace_s=0)) == 1


def test_a_live_lease_protects_its_slot(runtime: Runtime) -> None:
    slot = COUNT.slot(CountSpec(steps=1), lake=runtime.lake)
    attempt = begin(slot, run_id="run-1", lease_s=5.0, on_wait=lambda held: None)
    assert attempt is not None and find_garbage(runtime.lake, grace_s=0) == []
    attempt.release()
    assert [each.path for each in find_garbage(runtime.lake, grace_s=0)] == [slot.path]


def test_the_young_are_spared(runtime: Runtime, tmp_path: Path) -> None:
    build(COUNT, fail_once(runtime, tmp_path), runtime=runtime)
    assert find_garbage(runtime.lake, grace_s=60) == []
    for path in [*tree(runtime.lake), *runtime.lake.rglob("attempts/1")]:
        os.utime(path, (1, 1))
    assert len(find_garbage(runtime.lake, grace_s=60)) == 1


def test_temporary_files_go_and_revoked_records_stay(runtime: Runtime) -> None:
    record = build(COUNT, CountSpec(steps=1), runtime=replace(runtime, run_id="run-2")).record
    left = runtime.lake / "count" / record["fingerprint"] / ".tmp-left"
    left.write_bytes(b"12345")
    assert remove(find_garbage(runtime.lake, grace_s=0)) == 5
    assert not left.exists() and damaged(runtime.lake, record) == []
