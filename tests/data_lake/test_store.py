"""Slots: where a thing is follows from what it is; revoking moves it; damage is named."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from data_lake.gc import find_garbage
from data_lake.lease import lease_path
from data_lake.reasons import reasons
from data_lake.refs import EpisodesRef
from data_lake.store import Attempt, Slot, begin, builders, damaged, records, revoke, slot_of
from errors import UserError

SPEC = {"steps": 1}


def built(slot: Slot, label: str = "x", text: str = "bytes") -> dict[str, object]:
    attempt = begin(slot, run_id="r", lease_s=5.0, on_wait=lambda held: None)
    assert isinstance(attempt, Attempt)
    (attempt.path / "file").write_text(text)
    ref = EpisodesRef(uri=attempt.uri, fingerprint=attempt.fingerprint, num_episodes=1, num_frames=1)
    return attempt.commit(ref, {"label": label, "provenance": {"finished": "2026-01-01"}})


def test_an_address_follows_from_stage_version_spec_and_inputs(tmp_path: Path) -> None:
    ref = EpisodesRef(uri="elsewhere", fingerprint="f", num_episodes=1, num_frames=1)
    moved = EpisodesRef(uri="moved", fingerprint="f", num_episodes=9, num_frames=9)
    slots = [
        slot_of(tmp_path, "a", 1, SPEC, ()),
        slot_of(tmp_path, "b", 1, SPEC, ()),
        slot_of(tmp_path, "a", 2, SPEC, ()),
        slot_of(tmp_path, "a", 1, {"steps": 2}, ()),
        slot_of(tmp_path, "a", 1, SPEC, (ref,)),
    ]
    assert len({slot.fingerprint for slot in slots}) == len(slots)
    assert slot_of(tmp_path, "a", 1, SPEC, (moved,)) == slots[-1]  # only its fingerprint counts
    assert slots[0].path == tmp_path / "a" / slots[0].fingerprint
    assert slots[0].record() is None and slots[0].ref() is None and slots[0].holder() is None


def test_only_one_record_is_ever_written(tmp_path: Path) -> None:
    slot = slot_of(tmp_path, "a", 1, SPEC, ())
    first = built(slot)
    assert begin(slot, run_id="r", lease_s=5.0, on_wait=lambda held: None) is None
    assert slot.record() == first and records(tmp_path) == [first]


def test_builders_are_those_who_are_at_it(tmp_path: Path) -> None:
    """Not who has finished, let go, or died."""
    built(slot_of(tmp_path, "a", 1, SPEC, ()))
    slot = slot_of(tmp_path, "b", 1, SPEC, ())
    attempt = begin(slot, run_id="r7", lease_s=5.0, on_wait=lambda held: None)
    assert isinstance(attempt, Attempt)
    assert {name: holder.run_id for name, holder in builders(tmp_path).items()} == {f"b/{slot.fingerprint}": "r7"}
    attempt.release()
    assert builders(tmp_path) == {}
    dead = slot.holder()
    assert dead is not None
    lease_path(slot.path / "leases", 2).write_text(json.dumps(asdict(dead) | {"released": False, "started": "1"}))
    assert builders(tmp_path) == {}


def test_a_lake_can_be_moved(tmp_path: Path) -> None:
    record = built(slot_of(tmp_path / "here", "a", 1, SPEC, ()))
    (tmp_path / "here").rename(tmp_path / "there")
    assert slot_of(tmp_path / "there", "a", 1, SPEC, ()).record() == record
    assert damaged(tmp_path / "there", record) == []


def test_revoking_needs_a_record_and_moves_the_address_each_time(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        revoke(slot_of(tmp_path, "a", 1, SPEC, ()), why="none", who="me")
    seen = set()
    for turn in range(3):
        slot = slot_of(tmp_path, "a", 1, SPEC, ())
        built(slot)
        assert revoke(slot, why=f"turn {turn}", who="me")
        seen.add(slot.fingerprint)
        assert f"revoked: turn {turn}" in reasons(slot_of(tmp_path, "a", 1, SPEC, ()), "x")
    assert len(seen) == 3
    assert {record["revoked"]["why"] for record in records(tmp_path, "a")} == {"turn 0", "turn 1", "turn 2"}


@pytest.mark.parametrize("content", ["", "{}", '{"stage": "a", "fing', "[1]"])
def test_a_torn_record_is_named_with_what_to_do(tmp_path: Path, content: str) -> None:
    slot = slot_of(tmp_path, "a", 1, SPEC, ())
    built(slot)
    (slot.path / "record.json").write_text(content)
    for look in (slot.record, lambda: records(tmp_path), lambda: find_garbage(tmp_path, grace_s=0)):
        with pytest.raises(UserError, match=f"(?s)LAKE-(080|242).*{slot.fingerprint}/record.json.*delete it"):
            look()
