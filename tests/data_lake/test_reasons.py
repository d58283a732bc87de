"""Reasons name what differs from the finished slot most like the one that is asked about."""

from pathlib import Path

from data_lake.reasons import reasons
from data_lake.refs import EpisodesRef
from data_lake.store import revoke, slot_of
from tests.data_lake.test_store import SPEC, built


def test_what_differs_is_named(tmp_path: Path) -> None:
    slot = slot_of(tmp_path, "a", 1, SPEC, ())
    assert reasons(slot, "x") == ["first build"]
    built(slot)
    built(slot_of(tmp_path, "a", 1, {"steps": 5}, ()))
    ref = EpisodesRef(uri="elsewhere", fingerprint="f", num_episodes=1, num_frames=1)
    assert reasons(slot_of(tmp_path, "a", 1, {"steps": 2}, ()), "x") == ["steps: 5 -> 2"]  # of equals the newest
    assert reasons(slot_of(tmp_path, "a", 2, SPEC, ()), "x") == ["version 1 -> 2"]
    assert reasons(slot_of(tmp_path, "a", 1, SPEC, (ref,)), "x") == ["upstream"]
    assert reasons(slot_of(tmp_path, "a", 1, {"steps": 2}, ()), "other") == ["first build"]
    revoke(slot, why="lens was dirty", who="ada")
    assert reasons(slot_of(tmp_path, "a", 1, SPEC, ()), "x") == ["revoked: lens was dirty"]
