"""What crashed and outrun writers left can be told from what versions need."""

import os
from pathlib import Path

import pytest

from data_lake.gc import find_garbage, remove
from data_lake.lease import acquire
from data_lake.orphans import orphans
from data_lake.tables import read_manifest, versions
from data_lake.video import index_video
from data_lake.writer import Writer
from errors import Transient
from tests.data_lake.recordings import colour, write_video
from tests.data_lake.test_writer import append, indices, rows


def frames_in(paths: list[Path]) -> list[Path]:
    return [path for path in paths if path.suffix == ".lance" and path.parent.parent.name == "frames.lance"]


def test_nothing_but_orphans_is_found(tmp_path: Path) -> None:
    root, video = tmp_path / "cart", tmp_path / "a.mp4"
    write_video(video, [colour(1, frame) for frame in range(6)])
    for _ in range(2):
        writer = Writer(root)
        writer.add_video("front", video, index_video(video))
        writer.add_frames(rows(writer.num_frames, 4))
        writer.commit({"info.json": b"{}"}, num_episodes=1)
    one, other = Writer(root), Writer(root)
    for writer in (one, other):
        writer.add_frames(rows(8, 2))
        writer.commit({"info.json": b"{}"}, num_episodes=1)
    crashed = Writer(root)
    crashed.add_frames(rows(10, 50))
    crashed._flush_frames()

    found = orphans(root, older_than_s=0)
    assert len(frames_in(found)) == 1, "the crashed one's; the outrun one's are in the table's latest version"
    assert orphans(root, older_than_s=3600) == [], "nothing of a writer that may live"
    for path in found:
        os.unlink(path)
    assert orphans(root, older_than_s=0) == []
    for version, count in zip(versions(root), (4, 8, 10), strict=True):
        assert indices(root, version) == list(range(count))
    append(root, 3)
    assert indices(root) == list(range(13))
    outrun = orphans(root, older_than_s=0)
    assert len(frames_in(outrun)) == 1
    for path in outrun:
        os.unlink(path)
    assert indices(root) == list(range(13))
    manifest = read_manifest(root)
    assert manifest is not None and manifest.num_videos == 1


def test_a_writer_whose_files_were_taken_does_not_commit(tmp_path: Path) -> None:
    append(tmp_path, 4)
    slow = Writer(tmp_path)
    slow.add_frames(rows(4, 2))
    slow._flush_frames()
    for path in orphans(tmp_path, older_than_s=0):
        os.unlink(path)
    with pytest.raises(Transient):
        slow.commit({"info.json": b"{}"}, num_episodes=2)
    assert versions(tmp_path) == [1] and indices(tmp_path) == list(range(4))


def test_a_data_set_without_a_finished_version_is_all_orphans(tmp_path: Path) -> None:
    crashed = Writer(tmp_path)
    crashed.add_frames(rows(0, 5))
    crashed._flush_frames()
    crashed._commit_table("frames", rows(0, 1).schema, [each for _, group in crashed._frames for each in group])
    assert orphans(tmp_path, older_than_s=3600) == []
    for path in orphans(tmp_path, older_than_s=0):
        os.unlink(path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    append(tmp_path, 3)
    assert indices(tmp_path) == list(range(3))


def test_gc_takes_them_unless_an_ingest_lives(tmp_path: Path) -> None:
    root = tmp_path / "datasets/cart"
    append(root, 4)
    crashed = Writer(root)
    crashed.add_frames(rows(4, 50))
    crashed._flush_frames()
    left = orphans(root, older_than_s=0)
    assert left
    assert find_garbage(tmp_path, grace_s=3600) == []
    lease = acquire(
        tmp_path / "ingest/x/leases", run_id="r", lease_s=60, is_finished=lambda: False, on_wait=lambda _: None
    )
    assert lease is not None
    assert find_garbage(tmp_path, grace_s=0) == []
    lease.release()
    found = [each.path for each in find_garbage(tmp_path, grace_s=0)]
    assert set(left) <= set(found)
    remove([each for each in find_garbage(tmp_path, grace_s=0) if each.path in left])
    assert indices(root) == list(range(4))
