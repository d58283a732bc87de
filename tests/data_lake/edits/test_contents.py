"""The content hash of what is stored is that of what came, whether the source had videos or pictures."""

from pathlib import Path

import pytest

from data_lake.edits.contents import Contents
from data_lake.edits.relabel import relabel
from data_lake.specs import IngestSpec, ReadSpec
from data_lake.version import DatasetVersion, open_version
from errors import UserError
from tests.data_lake.edits.test_merge import other_rows
from tests.data_lake.hdf5_recordings import write_libero
from tests.data_lake.recordings import CAMERA, write_v2
from tests.data_lake.seen import ingest


def ensure_it_comes_out(version: DatasetVersion) -> None:
    contents = Contents(version)
    for row in version.episodes:
        assert contents.relabelled(row, row["instruction"]) == row["content_hash"]
        assert contents.relabelled(row, "wait") != row["content_hash"]
        older = {name: value for name, value in row.items() if name != "recording"}
        assert row["recording"] and contents.recording(older) == row["recording"]


def test_of_videos_of_two_cameras(tmp_path: Path) -> None:
    ingest(write_v2(tmp_path / "v2", (8, 12), (CAMERA, "observation.images.wrist")), tmp_path / "lake/datasets/cart")
    ensure_it_comes_out(open_version(tmp_path / "lake", "cart"))


def test_of_pictures(tmp_path: Path) -> None:
    """They are known by their pixels, which the video that the lake made of them gives back."""
    read = ReadSpec(colour_order="rgb", image_orientation="upright")
    spec = IngestSpec(dataset="arm", embodiment="arm", read=read)
    ingest(write_libero(tmp_path / "libero.hdf5"), tmp_path / "lake/datasets/arm", spec)
    ensure_it_comes_out(open_version(tmp_path / "lake", "arm"))


def test_what_does_not_come_out_is_said(tmp_path: Path) -> None:
    ingest(write_v2(tmp_path / "v2", (8,)), tmp_path / "lake/datasets/cart")
    version = open_version(tmp_path / "lake", "cart")
    with pytest.raises(UserError, match="another content hash") as refused:
        Contents(version).relabelled({**version.episodes[0], "content_hash": "0" * 64}, "wait")
    assert refused.value.code == "LAKE-186" and refused.value.where == "cart@1 · episode 0"


def test_a_recording_is_the_same_under_any_words(tmp_path: Path) -> None:
    """Other numbers or other pictures make another one."""
    lake = tmp_path / "lake"
    ingest(write_v2(tmp_path / "v2", (8, 12, 8)), lake / "datasets/cart")
    before = [row["recording"] for row in open_version(lake, "cart").episodes]
    relabel(lake, "cart", [("0-2", "wait")], who="ada")
    after = open_version(lake, "cart")
    older = after.episode_rows.drop_columns(["recording"]).to_pylist()
    assert [row["recording"] for row in after.episodes] == before == [Contents(after).recording(row) for row in older]
    assert len(set(before)) == 3
    other = write_v2(tmp_path / "other", (8,), rows=other_rows)
    ingest(other, lake / "datasets/other")
    first, second = write_v2(tmp_path / "seen", (8,)), write_v2(tmp_path / "donor", (8, 8))
    (second / f"videos/chunk-000/{CAMERA}/episode_000001.mp4").replace(
        first / f"videos/chunk-000/{CAMERA}/episode_000000.mp4"
    )
    ingest(first, lake / "datasets/seen")
    found = {open_version(lake, name).episodes[0]["recording"] for name in ("cart", "other", "seen")}
    assert len(found) == 3
