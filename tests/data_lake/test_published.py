"""The path of a version: what LeRobot relies on is there, it moves with the lake, and nothing under it ever changes."""

import hashlib
import json
import shutil
import threading
from pathlib import Path

import lance
import numpy as np
import pyarrow.parquet as pq
import pytest

from data_lake import published
from data_lake.files import tree
from data_lake.published import publish_lance
from data_lake.sources.lerobot import LeRobotFolder
from data_lake.version import open_version
from errors import UserError
from tests.data_lake.recordings import CAMERA, write_v2, write_v3
from tests.data_lake.seen import ingest

LENGTHS = (8, 12, 10)


def cart(folder: Path, *recordings: tuple[int, ...]) -> Path:
    for number, lengths in enumerate(recordings or (LENGTHS,)):
        ingest(write_v2(folder / f"source-{number}", lengths), folder / "lake/datasets/cart")
    return folder / "lake"


def bytes_of(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in tree(folder)}


def read_as_a_stranger(folder: Path) -> tuple[list[int], list[bytes]]:
    """Each table at its latest version, in the order of its rows."""
    videos = lance.dataset(str(folder / "videos.lance"))
    blobs = [content for _, content in videos.read_blobs("video_bytes", indices=list(range(videos.count_rows())))]
    return lance.dataset(str(folder / "frames.lance")).to_table()["index"].to_pylist(), blobs


def test_what_lerobot_relies_on(tmp_path: Path) -> None:
    lake = cart(tmp_path)
    folder, findings = publish_lance(open_version(lake, "cart"))
    assert findings == [] and folder == lake / "datasets/cart/published/000001"
    info = json.loads((folder / "meta/info.json").read_text())
    assert (info["storage_format"], info["codebase_version"], info["total_frames"]) == ("lance", "v3.0", 30)
    frames = lance.dataset(str(folder / "frames.lance"))
    assert {key.replace(".", "_") for key in info["features"]} - {CAMERA.replace(".", "_")} == set(frames.schema.names)
    assert frames.to_table()["index"].to_pylist() == list(range(30)), "row N is absolute frame N"
    episodes = pq.read_table(folder / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    ends = np.cumsum(LENGTHS).tolist()
    assert [episode["dataset_to_index"] for episode in episodes] == ends
    assert [episode["dataset_from_index"] for episode in episodes] == [0, *ends[:-1]]
    columns = ["video_key", "chunk_index", "file_index", "file_size", "moov_offset", "kf_indices", "kf_positions"]
    videos = lance.dataset(str(folder / "videos.lance")).to_table(columns=columns).to_pylist()
    named = {
        (CAMERA, *(episode[f"videos/{CAMERA}/{name}_index"] for name in ("chunk", "file"))) for episode in episodes
    }
    assert named == {(row["video_key"], row["chunk_index"], row["file_index"]) for row in videos}
    sources = [(tmp_path / f"source-0/videos/chunk-000/{CAMERA}/episode_{n:06d}.mp4").read_bytes() for n in range(3)]
    assert read_as_a_stranger(folder)[1] == sources
    meta = lance.dataset(str(folder / "meta.lance")).to_table().to_pylist()
    assert {row["path"]: row["data"] for row in meta} == {
        path.relative_to(folder / "meta").as_posix(): path.read_bytes() for path in tree(folder / "meta")
    }


def test_statistics_that_training_asks_for_are_there(tmp_path: Path) -> None:
    """Pain D22: the source has none, and every column and camera has quantiles here."""
    source = write_v2(tmp_path / "source")
    (source / "meta/episodes_stats.jsonl").unlink()
    ingest(source, tmp_path / "lake/datasets/cart")
    folder, _ = publish_lance(open_version(tmp_path / "lake", "cart"))
    stats = json.loads((folder / "meta/stats.json").read_text())
    assert set(stats) == set(json.loads((folder / "meta/info.json").read_text())["features"])
    for summary in stats.values():
        assert set(summary) == {"min", "max", "mean", "std", "count", "q01", "q10", "q50", "q90", "q99"}
    assert np.shape(stats[CAMERA]["q99"]) == (3, 1, 1)


def test_an_append_changes_nothing(tmp_path: Path) -> None:
    """Before, while and after others append, an opened path gives the same rows and bytes of video."""
    lake = cart(tmp_path)
    folder, _ = publish_lance(open_version(lake, "cart"))
    files, seen = bytes_of(folder), read_as_a_stranger(folder)
    sources = [write_v2(tmp_path / f"later-{number}", (5 + number, 9)) for number in range(3)]
    failures: list[BaseException] = []

    def append() -> None:
        try:
            for source in sources:
                ingest(source, lake / "datasets/cart")
        except BaseException as error:
            failures.append(error)
            raise

    writer = threading.Thread(target=append)
    writer.start()
    passes = 0
    while writer.is_alive() or passes < 3:
        assert read_as_a_stranger(folder) == seen
        passes += 1
    writer.join()
    assert failures == [] and open_version(lake, "cart").manifest.version == 4
    assert bytes_of(folder) == files and read_as_a_stranger(folder) == seen
    later, _ = publish_lance(open_version(lake, "cart"))
    assert later != folder and len(read_as_a_stranger(later)[0]) > 30


def test_it_moves_with_the_lake_and_outlives_its_tables(tmp_path: Path) -> None:
    lake = cart(tmp_path)
    folder, _ = publish_lance(open_version(lake, "cart"))
    seen = read_as_a_stranger(folder)
    shutil.move(lake, tmp_path / "elsewhere")
    for table in (tmp_path / "elsewhere/datasets/cart").glob("*.lance"):
        shutil.rmtree(table)
    assert read_as_a_stranger(tmp_path / "elsewhere/datasets/cart/published/000001") == seen


def test_videos_take_no_place_twice(tmp_path: Path) -> None:
    lake = cart(tmp_path)
    folder, _ = publish_lance(open_version(lake, "cart"))
    held = {path.stat().st_ino for path in tree(lake / "datasets/cart/videos.lance/data")}
    assert held and held == {path.stat().st_ino for path in tree(folder / "videos.lance/data")}


def test_an_older_version_has_its_own_path(tmp_path: Path) -> None:
    lake = cart(tmp_path, (8,), (8, 12))
    for named, count in (("cart@1", 8), ("cart@2", 20)):
        folder, _ = publish_lance(open_version(lake, named))
        assert read_as_a_stranger(folder)[0] == list(range(count))


def test_the_second_call_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = open_version(cart(tmp_path), "cart")
    first = publish_lance(version)
    monkeypatch.setattr(published, "statistics_of", None)
    assert publish_lance(version) == first


def test_a_crash_leaves_nothing_that_looks_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = cart(tmp_path)

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(published, "_verify", fail)
    with pytest.raises(OSError, match="disk full"):
        publish_lance(open_version(lake, "cart"))
    assert list((lake / "datasets/cart/published").iterdir()) == []
    monkeypatch.undo()
    assert publish_lance(open_version(lake, "cart"))[0].is_dir()


def test_a_version_that_is_not_whole_is_not_published(tmp_path: Path) -> None:
    from dataclasses import replace

    version = open_version(cart(tmp_path), "cart")
    short = replace(version, manifest=replace(version.manifest, num_frames=31))
    with pytest.raises(UserError) as refused:
        publish_lance(short)
    assert refused.value.code == "LAKE-132" and "LAKE-070" in refused.value.message
    assert list((version.root / "published").iterdir()) == []


def test_meta_that_is_not_that_of_the_tables_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = open_version(cart(tmp_path), "cart")
    monkeypatch.setattr("data_lake.exports.meta.said_beside", lambda _: [{"dataset_from_index": 1}] * 3)
    with pytest.raises(UserError, match="LAKE-071") as refused:
        publish_lance(version)
    assert refused.value.code == "LAKE-132" and list((version.root / "published").iterdir()) == []


def test_an_episode_without_a_camera_is_refused_by_name(tmp_path: Path) -> None:
    cameras = (CAMERA, "observation.images.wrist")
    source = write_v2(tmp_path / "v2", LENGTHS, cameras)
    ingest(
        write_v3(tmp_path / "v3", source, LENGTHS, cameras, without=[(1, cameras[1])]), tmp_path / "lake/datasets/cart"
    )
    with pytest.raises(UserError, match=r"episode 1 has no camera 'observation\.images\.wrist'") as refused:
        publish_lance(open_version(tmp_path / "lake", "cart"))
    assert refused.value.code == "LAKE-130"


def test_it_is_no_plain_lerobot_folder(tmp_path: Path) -> None:
    folder, _ = publish_lance(open_version(cart(tmp_path), "cart"))
    assert not LeRobotFolder.recognises(folder)
