"""Slots on an object store: attempts are written here, put there before their record, and fetched where a folder is
needed."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from upath import UPath

from data_lake import objects
from data_lake.files import replace, sha256
from data_lake.gc import find_garbage, remove
from data_lake.lease import TakenOver
from data_lake.mirror import fetched, mirror_of
from data_lake.reasons import reasons
from data_lake.refs import EpisodesRef
from data_lake.runs import Run, runs
from data_lake.store import (
    Attempt,
    Slot,
    begin,
    builders,
    damaged,
    records,
    revoke,
    slot_of,
)
from data_lake.vouched import require_files
from errors import UserError

SPEC = {"steps": 1}


def take(slot: Slot, home: Path, lease_s: float = 5.0) -> Attempt:
    mirror = mirror_of(slot.lake, home)
    attempt = begin(slot, run_id="r", lease_s=lease_s, on_wait=lambda held: None, mirror=mirror)
    assert attempt is not None
    return attempt


def ref_of(attempt: Attempt, folder: str = "") -> EpisodesRef:
    uri = f"{attempt.uri}/{folder}".rstrip("/")
    return EpisodesRef(uri=uri, fingerprint=attempt.fingerprint, num_episodes=1, num_frames=1)


def finish(attempt: Attempt, folder: str = "") -> dict[str, Any]:
    return attempt.commit(ref_of(attempt, folder), {"label": "x", "provenance": {"finished": "2026-01-01"}})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_a_folder_is_its_own_mirror(tmp_path: Path) -> None:
    assert mirror_of(tmp_path / "lake", tmp_path / "home") == tmp_path / "lake"
    assert fetched(tmp_path / "lake", "a/b", tmp_path / "home") == tmp_path / "lake/a/b"


def test_what_an_attempt_wrote_is_there_before_its_record(bucket: UPath, home: Path) -> None:
    slot = slot_of(bucket, "a", 1, SPEC, ())
    attempt = take(slot, home)
    replace(attempt.path / "result/file", b"bytes")
    replace(attempt.path / "log", b"text")
    assert list(objects.below(slot.path)) == ["leases/0001.json"] and slot.record() is None
    assert builders(bucket).keys() == {f"a/{slot.fingerprint}"}
    record = finish(attempt, "result")
    assert record["files"].keys() == {"attempts/1/result/file"}, "the record vouches for what its ref names"
    assert {name for name in objects.below(slot.path) if "attempts" in name} == {
        "attempts/1/log",
        "attempts/1/result/file",
    }
    assert slot.record() == record and records(bucket) == [record] and builders(bucket) == {}
    assert begin(slot, run_id="r", lease_s=5, on_wait=lambda held: None, mirror=mirror_of(bucket, home)) is None
    assert damaged(bucket, record) == [] and require_files(bucket, [ref_of(attempt)]) is None


def test_it_is_fetched_elsewhere_and_only_once(bucket: UPath, home: Path, tmp_path: Path) -> None:
    attempt = take(slot_of(bucket, "a", 1, SPEC, ()), home)
    for name in ("policy.json", "weights", "samples.lance/data/1.lance"):
        replace(attempt.path / name, name.encode())
    record = finish(attempt)
    assert fetched(bucket, record["ref"]["uri"], home) == attempt.path
    beside = fetched(bucket, record["ref"]["uri"], tmp_path / "other", tables=False)
    assert sorted(path.name for path in beside.iterdir()) == ["policy.json", "weights"]
    os.utime(beside / "weights", (1, 1))
    (beside / "policy.json").write_bytes(b"cut")
    folder = fetched(bucket, record["ref"]["uri"], tmp_path / "other")
    assert folder == beside and (folder / "weights").stat().st_mtime == 1, "what is here is not fetched again"
    for name, expected in record["files"].items():
        assert sha256(folder / name.removeprefix("attempts/1/")) == expected["sha256"]
    with pytest.raises(UserError, match="(?s)LAKE-174.*a/never"):
        fetched(bucket, "a/never", home)


def test_no_room_is_said_before_anything_is_fetched(bucket: UPath, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace(bucket / "a/file", b"12345")
    monkeypatch.setattr(objects.shutil, "disk_usage", lambda path: SimpleNamespace(free=4))
    with pytest.raises(UserError, match="(?s)LAKE-173.*5 bytes.*room for 4"):
        fetched(bucket, "a", home)
    assert not list(home.rglob("file"))


def test_a_builder_that_was_taken_over_leaves_no_record(bucket: UPath, home: Path) -> None:
    slot = slot_of(bucket, "a", 1, SPEC, ())
    first = take(slot, home)
    replace(first.path / "half", b"half")
    first._lease.release()  # as if it were long dead
    second = take(slot, home)
    assert second.number == 2 and second.earlier == [first.path] and (second.earlier[0] / "half").exists()
    with pytest.raises(TakenOver):
        finish(first)
    assert slot.record() is None
    replace(second.path / "whole", b"whole")
    assert finish(second)["attempt"] == 2


def test_a_number_that_the_store_forgot_begins_anew(bucket: UPath, home: Path) -> None:
    """gc removed the unfinished slot there; what is left of it here is another attempt's."""
    slot = slot_of(bucket, "a", 1, SPEC, ())
    first = take(slot, home)
    replace(first.path / "stale", b"stale")
    first.release()
    assert [each.path for each in find_garbage(bucket, grace_s=0)] == [slot.path]
    remove(find_garbage(bucket, grace_s=0))
    assert objects.below(bucket) == {}
    again = take(slot, home)
    assert again.path == first.path and list(again.path.iterdir()) == []


def test_attempts_that_no_record_names_go(bucket: UPath, home: Path) -> None:
    slot = slot_of(bucket, "a", 1, SPEC, ())
    attempt = take(slot, home)
    replace(attempt.path / "file", b"bytes")
    record = finish(attempt)
    replace(slot.path / "attempts/7/half", b"half")
    assert [each.path for each in find_garbage(bucket, grace_s=0)] == [slot.path / "attempts/7"]
    assert remove(find_garbage(bucket, grace_s=0)) == 4 and damaged(bucket, record) == []


def test_copies_of_what_the_lake_holds_go(bucket: UPath, home: Path) -> None:
    """Not what a live builder writes, nor what an unfinished run needs for its retry."""
    finished, living, needed = (take(slot_of(bucket, name, 1, SPEC, ()), home) for name in ("a", "b", "c"))
    for attempt in (finished, living, needed):
        replace(attempt.path / "file", b"bytes")
    finish(finished)
    Run(lake=bucket, run_id="run-1").touch(slot_of(bucket, "c", 1, SPEC, ()))
    needed.release()
    mirror = mirror_of(bucket, home)
    assert [each.path for each in find_garbage(bucket, grace_s=0, mirror=mirror)] == [finished.slot]
    assert find_garbage(bucket, grace_s=60, mirror=mirror) == [] == find_garbage(bucket, grace_s=0)
    Run(lake=bucket, run_id="run-1").finish("x")
    assert {each.path for each in find_garbage(bucket, grace_s=0, mirror=mirror)} == {
        finished.slot,
        needed.slot,
        slot_of(bucket, "c", 1, SPEC, ()).path,
    }
    living.release()


def test_damage_loss_and_revocation_are_told(bucket: UPath, home: Path) -> None:
    slot = slot_of(bucket, "a", 1, SPEC, ())
    attempt = take(slot, home)
    replace(attempt.path / "file", b"bytes")
    record = finish(attempt)
    replace(slot.path / "attempts/1/file", b"other")
    assert damaged(bucket, record) == ["attempts/1/file: content differs from what its record vouches for"]
    (slot.path / "attempts/1/file").unlink()
    with pytest.raises(UserError, match="(?s)LAKE-081.*attempts/1/file"):
        require_files(bucket, [ref_of(attempt)])
    assert revoke(slot, why="lost", who="me") and not revoke(slot, why="again", who="me")
    moved = slot_of(bucket, "a", 1, SPEC, ())
    assert moved.fingerprint != slot.fingerprint and reasons(moved, "x") == ["revoked: lost"]


def test_runs_are_known_by_what_they_touched(bucket: UPath) -> None:
    run, slot = Run(lake=bucket, run_id="run-1"), slot_of(bucket, "a", 1, SPEC, ())
    for _ in range(2):
        run.touch(slot)
    assert runs(bucket) == [run] and run.slots() == [("a", slot.fingerprint)] and not run.is_finished()
    run.finish("x")
    assert run.is_finished()


def test_an_attempt_without_a_mirror_is_refused(bucket: UPath) -> None:
    with pytest.raises(ValueError, match="needs a mirror"):
        begin(slot_of(bucket, "a", 1, SPEC, ()), run_id="r", lease_s=5, on_wait=lambda held: None)
