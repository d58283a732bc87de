"""Versions given up: never one that is needed, never brought back, and a reader gets the same rows or a clear word."""

import json
from pathlib import Path

import pytest

from data_lake.edits.compact import compact
from data_lake.edits.forget import forget_before, pins
from data_lake.edits.relabel import relabel
from data_lake.edits.tags import put_tag
from data_lake.gc import find_garbage, remove
from data_lake.given_up import given_up
from data_lake.head import look_at_head
from data_lake.refs import DatasetRef
from data_lake.runs import Run
from data_lake.store import begin, slot_of
from data_lake.tables import open_table, read_manifest, versions
from data_lake.version import open_version
from data_lake.writer import Writer
from errors import UserError
from tests.data_lake.crashing_ingest import SPEC
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import content, ingest


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Versions 1 to 3 by ingests, 4 compacted."""
    for count in range(1, 4):
        ingest(write_v2(tmp_path / f"source-{count}", (8, 12, 10)[:count]), tmp_path / "lake/datasets/cart")
    compact(tmp_path / "lake", "cart", who="ada")
    return tmp_path / "lake"


def forget(lake: Path, before: int) -> tuple[list[int], dict[int, str]]:
    return forget_before(lake, "cart", before, who="ada")


def cleaned(lake: Path, grace_s: float = 0) -> int:
    return remove(find_garbage(lake, grace_s=grace_s))


def record(lake: Path, version: int) -> None:
    """That of an ingest whose view is of `version`."""
    slot = slot_of(lake, "ingest", 1, SPEC, ())
    attempt = begin(slot, run_id="r", lease_s=60, on_wait=lambda _: None)
    assert attempt is not None
    ref = DatasetRef(
        uri=attempt.uri,
        fingerprint="f",
        dataset="cart",
        version=version,
        num_episodes=1,
        num_quarantined=0,
        num_frames=8,
        num_findings=0,
    )
    (attempt.path / "episodes.json").write_text("{}")
    attempt.commit(ref, {"label": "x", "provenance": {"finished": ""}})


def test_what_was_given_up_is_cleaned_away(lake: Path) -> None:
    newest, old = content(lake / "datasets/cart"), content(lake / "datasets/cart", 1)
    cleaned(lake)
    assert content(lake / "datasets/cart", 1) == old, "gc alone keeps every version"
    assert forget(lake, 4) == ([1, 2, 3], {})
    assert versions(lake / "datasets/cart") == [4] and cleaned(lake) > 0 and cleaned(lake) == 0
    assert content(lake / "datasets/cart") == newest
    assert not list((lake / "datasets/cart/frames.lance").rglob("1.manifest"))
    for version in (1, 2, 3):
        with pytest.raises(UserError, match=f"version {version} of cart was given up") as expired:
            open_version(lake, f"cart@{version}")
        assert expired.value.code == "LAKE-182"
    relabel(lake, "cart", [("0", "wait")], who="ada")
    assert versions(lake / "datasets/cart") == [4, 5]


def test_a_reader_gets_the_same_rows_or_a_clear_word(lake: Path) -> None:
    """One that opened version 2 reads on while it is given up; within gc's grace its files stay."""
    root = lake / "datasets/cart"
    reader = open_version(lake, "cart@2")
    before = reader.table("frames").to_table()
    compact(lake, "cart", who="ada")
    forget(lake, 4)
    cleaned(lake, grace_s=3600)
    assert reader.table("frames").to_table().equals(before)
    cleaned(lake)
    with pytest.raises(UserError) as expired:
        reader.table("frames")
    assert expired.value.code == "LAKE-182"
    assert read_manifest(root) is not None and versions(root) == [4]


def test_what_is_needed_stays(lake: Path) -> None:
    """By the view of a record, by a run that is not finished, by a tag."""
    root = lake / "datasets/cart"
    run = Run(lake=lake, run_id="run-1")
    run.source(lambda: look_at_head(lake, "lake:cart@3"))
    put_tag(root, "paper", 2, who="ada")
    record(lake, 1)
    given, kept = forget(lake, 4)
    assert given == [] and set(kept) == {1, 2, 3}
    assert "ingest/" in kept[1] and "tag paper" in kept[2] and "run-1" in kept[3]
    run.finish("x")
    assert forget(lake, 4)[0] == [3]
    old = content(root, 2)
    cleaned(lake)
    assert content(root, 2) == old and versions(root) == [1, 2, 4]
    assert set(pins(lake, "cart")) == {1, 2}


def test_what_came_to_be_needed_meanwhile_is_not_cleaned_away(lake: Path) -> None:
    """A record put after its version was given up: its view is read by the vector, which is still there."""
    root = lake / "datasets/cart"
    manifest = read_manifest(root, 2)
    assert manifest is not None
    forget(lake, 4)
    record(lake, 2)
    cleaned(lake)
    assert open_table(root, manifest, "frames").count_rows() == 20


def test_the_newest_stays(lake: Path) -> None:
    with pytest.raises(UserError, match="version 4 is the newest") as refused:
        forget(lake, 5)
    assert refused.value.code == "LAKE-188" and given_up(lake / "datasets/cart") == set()
    with pytest.raises(UserError, match="no data set"):
        forget_before(lake, "nothing", 1, who="ada")


def test_a_slow_writer_does_not_bring_a_version_back(tmp_path: Path) -> None:
    """It began on version 1; by now 2 was given up, and its number is not free."""
    root = tmp_path / "lake/datasets/cart"
    ingest(write_v2(tmp_path / "source-1", (8,)), root)
    slow = Writer(root)
    for count in (2, 3):
        ingest(write_v2(tmp_path / f"source-{count}", (8, 12, 10)[:count]), root)
    forget(tmp_path / "lake", 3)
    slow.add_frames(open_version(tmp_path / "lake", "cart").table("frames").to_table())
    assert slow.commit({}, num_episodes=1) is None
    assert versions(root) == [3]


def test_who_gave_it_up_is_kept(lake: Path) -> None:
    forget(lake, 2)
    said = json.loads((lake / "datasets/cart/given-up/000001.json").read_text())
    assert (said["version"], said["by"]) == (1, "ada")
