"""Folders given out: round trips through both forms, bytes of video, what is refused, nothing that is half there."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from data_lake import exports
from data_lake.decode import frames as decoded
from data_lake.exports import publish_folder
from data_lake.exports import v30 as v30_module
from data_lake.specs import IngestSpec, ReadSpec
from data_lake.version import DatasetVersion, open_version
from data_lake.video import index_video
from errors import UserError
from tests.data_lake.exports.round_trip import FORMS, LENGTHS, given_out, hashes, taken_in
from tests.data_lake.recordings import (
    CAMERA,
    FPS,
    add_pictures,
    write_v2,
    write_v3,
    write_video,
)
from tests.data_lake.recordings import colour as coloured
from tests.data_lake.seen import content


def pictures(path: Path, from_s: float, count: int = 12) -> list[bytes]:
    """Frames as they decode to RGB."""
    with path.open("rb") as file:
        found = decoded(file, from_s=from_s, to_s=None, fps=FPS, wanted=range(count))
        return [image.tobytes() for _, image in found]


def everything(version: DatasetVersion) -> dict[str, Any]:
    """A version without the numbers and digests of its mp4 files."""
    seen = content(version.root)
    dropped = [name for name in seen["episodes"] if name.startswith("videos/") or name == "meaning"]
    seen["episodes"] = {name: values for name, values in seen["episodes"].items() if name not in dropped}
    seen.pop("videos")
    seen["counts"] = seen["counts"][:2]
    seen["info"].pop("vlaloop")
    return seen


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("write", ["v2", "v3"])
def test_what_goes_out_comes_back(write: str, form: str, tmp_path: Path) -> None:
    source = write_v2(tmp_path / "v2")
    source = source if write == "v2" else write_v3(tmp_path / "v3", source)
    first = taken_in(source, tmp_path / "lake")
    again = taken_in(given_out(first, tmp_path / "out", form), tmp_path / "again")
    assert hashes(again) == hashes(first)
    assert everything(again) == everything(first)


@pytest.mark.parametrize(
    "name", ["lerobot-v3.0-metaworld-by-lerobot", "lerobot-v3.0-gr1-repacked", "lerobot-v3.0-pusht-mini"]
)
@pytest.mark.parametrize("form", FORMS)
def test_recorded_data_come_back(name: str, form: str, tmp_path: Path, shared_data: Path) -> None:
    """AV1 and H.264, several episodes in one mp4, two cameras, none."""
    first = taken_in(shared_data / name, tmp_path / "lake")
    again = taken_in(given_out(first, tmp_path / "out", form), tmp_path / "again")
    assert hashes(again) == hashes(first) and len(hashes(first)) in (3, 5)
    assert everything(again)["frames"] == everything(first)["frames"]


def test_videos_are_those_of_their_episode(tmp_path: Path, shared_data: Path) -> None:
    """Pain D03: data file and video file differ from episode 2 on; each cut equals the v2.0 original's packets."""
    version = taken_in(shared_data / "lerobot-v3.0-gr1-repacked", tmp_path / "lake")
    out = given_out(version, tmp_path / "out", "v2.1")
    original = shared_data / "lerobot-v2.0-gr1-picknplace"
    for number in range(5):
        (cut,) = out.glob(f"videos/chunk-000/*/episode_{number:06d}.mp4")
        (recorded,) = original.rglob(f"*ego_view/episode_{number:06d}.mp4")
        assert np.array_equal(index_video(cut).packets, index_video(recorded).packets)
        assert index_video(cut).times_s[0] == 0


@pytest.mark.parametrize("form", FORMS)
def test_pictures_go_out_as_video_and_it_is_said(form: str, tmp_path: Path) -> None:
    """A camera of dtype `image` comes back from the folder as a video of the same pixels, bit by bit."""
    images = np.random.default_rng(0).integers(0, 256, (3, 12, 16, 24, 3), np.uint8)
    source = add_pictures(write_v2(tmp_path / "source", cameras=()), lambda episode, frame: images[episode, frame])
    version = taken_in(source, tmp_path / "lake")
    findings = publish_folder(version, tmp_path / "out", form)
    assert [(item.code, item.severity, item.camera) for item in findings] == [("LAKE-196", "note", CAMERA)]
    feature = json.loads((tmp_path / "out/meta/info.json").read_text())["features"][CAMERA]
    assert (feature["dtype"], feature["shape"]) == ("video", [16, 24, 3])
    again = taken_in(tmp_path / "out", tmp_path / "again")
    assert everything(again)["frames"] == everything(version)["frames"]
    assert publish_folder(again, tmp_path / "more", form) == [], "it is a video now"
    for path in sorted((tmp_path / "out").rglob("*.mp4")):
        number = int(path.stem.split("_" if form == "v2.1" else "-")[1])
        expected = [image.tobytes() for image in images[number][: LENGTHS[number]]]
        assert pictures(path, 0.0, LENGTHS[number]) == expected


@pytest.mark.parametrize("form", FORMS)
def test_stored_bytes_are_placed_as_they_are(form: str, tmp_path: Path) -> None:
    """v2.1 in, one mp4 per episode: both forms place the very files."""
    source = write_v2(tmp_path / "source")
    out = given_out(taken_in(source, tmp_path / "lake"), tmp_path / "out", form)
    before = sorted(path.read_bytes() for path in source.rglob("*.mp4"))
    assert sorted(path.read_bytes() for path in out.rglob("*.mp4")) == before and len(before) == 3


@pytest.mark.parametrize("form", FORMS)
def test_episodes_that_show_the_same_come_back_all(form: str, tmp_path: Path) -> None:
    """Stored once in the lake, and in a folder once for each of them: a span has one owner there."""
    source = write_v2(tmp_path / "source", lengths=(8, 8, 10, 8))
    videos = source / f"videos/chunk-000/{CAMERA}"
    for number in (1, 3):
        shutil.copyfile(videos / "episode_000000.mp4", videos / f"episode_{number:06d}.mp4")
    first = taken_in(source, tmp_path / "lake")
    out = given_out(first, tmp_path / "out", form)
    again = taken_in(out, tmp_path / "again")
    assert first.manifest.num_videos == again.manifest.num_videos == 2
    assert len(list(out.rglob("*.mp4"))) == 4
    assert hashes(again) == hashes(first) and len(hashes(first)) == 4


def test_a_joint_video_is_placed_once(tmp_path: Path) -> None:
    source = write_v3(tmp_path / "v3", write_v2(tmp_path / "v2"))
    out = given_out(taken_in(source, tmp_path / "lake"), tmp_path / "out", "v3.0")
    (placed,) = out.rglob("*.mp4")
    assert placed.read_bytes() == (source / f"videos/{CAMERA}/chunk-000/file-000.mp4").read_bytes()


def test_a_video_that_cannot_be_cut_is_encoded_anew_and_said(tmp_path: Path) -> None:
    """Spans begin at frames 0, 8 and 20 of a video with a keyframe every five: the one at 8 cannot stand alone."""
    source = write_v3(tmp_path / "v3", write_v2(tmp_path / "v2"))
    colours = [coloured(0, frame) for frame in range(sum(LENGTHS))]
    write_video(source / f"videos/{CAMERA}/chunk-000/file-000.mp4", colours)
    version = taken_in(source, tmp_path / "lake")
    findings = publish_folder(version, tmp_path / "out", "v2.1")
    assert [(item.code, item.episode, item.camera) for item in findings] == [("LAKE-134", 1, CAMERA)]
    again = taken_in(tmp_path / "out", tmp_path / "again")
    same = [one == other for one, other in zip(hashes(again), hashes(version), strict=True)]
    assert same == [True, False, True], "packets of the second differ, its rows do not"
    assert everything(again)["frames"] == everything(version)["frames"]
    cut = tmp_path / f"out/videos/chunk-000/{CAMERA}/episode_000001.mp4"
    assert pictures(cut, 0.0) == pictures(source / f"videos/{CAMERA}/chunk-000/file-000.mp4", 8 / FPS)
    assert publish_folder(version, tmp_path / "v30", "v3.0") == []


def test_statistics_of_all_rows_are_not_averages(tmp_path: Path) -> None:
    """Pain D21: quantiles over all rows as numpy gives them, not the mean of the episodes' quantiles."""
    out = given_out(taken_in(write_v2(tmp_path / "source"), tmp_path / "lake"), tmp_path / "out", "v3.0")
    stats = json.loads((out / "meta/stats.json").read_text())["action"]
    rows = np.stack(pq.read_table(out / "data/chunk-000/file-000.parquet")["action"].to_numpy()).astype(np.float64)
    for name, share in (("q01", 0.01), ("q10", 0.1), ("q50", 0.5), ("q90", 0.9), ("q99", 0.99)):
        np.testing.assert_allclose(stats[name], np.quantile(rows, share, axis=0))
    np.testing.assert_allclose(stats["std"], rows.std(axis=0))
    assert stats["count"] == [30]
    episodes = pq.read_table(out / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    averaged = np.average([row["stats/action/q99"] for row in episodes], axis=0, weights=LENGTHS)
    assert not np.allclose(averaged, stats["q99"])
    assert [row["stats/action/count"] for row in episodes] == [[8], [12], [10]]


@pytest.mark.usefixtures("let_in")
def test_episodes_that_mean_different_things_are_refused(tmp_path: Path) -> None:
    taken_in(write_v2(tmp_path / "one"), tmp_path / "lake")
    spec = IngestSpec(dataset="cart", embodiment="cart", read=ReadSpec(colour_order="bgr"))
    version = taken_in(write_v2(tmp_path / "two", (5, 6)), tmp_path / "lake", spec)
    with pytest.raises(UserError, match="colour_order") as refused:
        publish_folder(version, tmp_path / "out", "v3.0")
    assert refused.value.code == "LAKE-006" and not (tmp_path / "out").exists()


def test_rows_go_into_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = taken_in(write_v2(tmp_path / "source"), tmp_path / "lake")
    monkeypatch.setattr(v30_module, "DATA_BYTES", 1)
    out = given_out(first, tmp_path / "out", "v3.0")
    assert len(list(out.glob("data/chunk-000/*.parquet"))) == 3
    assert hashes(taken_in(out, tmp_path / "again")) == hashes(first)


def test_an_existing_folder_is_left_alone(tmp_path: Path) -> None:
    version = taken_in(write_v2(tmp_path / "source"), tmp_path / "lake")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("mine")
    with pytest.raises(UserError) as refused:
        publish_folder(version, tmp_path / "out", "v3.0")
    assert refused.value.code == "LAKE-133" and [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_an_unknown_form_is_named(tmp_path: Path) -> None:
    version = taken_in(write_v2(tmp_path / "source"), tmp_path / "lake")
    with pytest.raises(UserError, match=r"v3\.0"):
        publish_folder(version, tmp_path / "out", "v3.1")


@pytest.mark.parametrize("form", FORMS)
def test_a_crash_leaves_no_folder(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = taken_in(write_v2(tmp_path / "source"), tmp_path / "lake")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(exports, "_verify", fail)
    (tmp_path / "place").mkdir()
    with pytest.raises(OSError, match="disk full"):
        publish_folder(version, tmp_path / "place/out", form)
    assert list((tmp_path / "place").iterdir()) == []


def test_stored_bytes_that_changed_are_not_given_out(tmp_path: Path) -> None:
    version = taken_in(write_v2(tmp_path / "source"), tmp_path / "lake")
    blobs = [path for path in (version.root / "videos.lance/data").rglob("*") if path.is_file()]
    for path in blobs:
        content = bytearray(path.read_bytes())
        if (place := content.find(b"mdat")) > 0:
            content[place + 40] ^= 0xFF
            path.write_bytes(bytes(content))
    with pytest.raises(UserError) as refused:
        publish_folder(version, tmp_path / "out", "v3.0")
    assert refused.value.code in ("LAKE-076", "LAKE-132", "DECODE-002") and not (tmp_path / "out").exists()


def test_old_versions_go_out_as_they_were(tmp_path: Path) -> None:
    taken_in(write_v2(tmp_path / "one", (8,)), tmp_path / "lake")
    taken_in(write_v2(tmp_path / "two", (8, 12)), tmp_path / "lake")
    out = given_out(open_version(tmp_path / "lake", "cart@1"), tmp_path / "out", "v3.0")
    assert json.loads((out / "meta/info.json").read_text())["total_frames"] == 8
    assert len(list(out.rglob("*.mp4"))) == 1
    shutil.rmtree(out)
