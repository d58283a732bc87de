"""One defect at a time: the episode goes to quarantine with its code, the others enter the lake."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data_lake.doctor import doctor
from data_lake.frames import FrameReader
from data_lake.version import open_version
from tests.data_lake.recordings import (
    CAMERA,
    FPS,
    SIZE,
    change_episode_table,
    change_episodes,
    change_rows,
    write_v2,
    write_v3,
)
from tests.data_lake.seen import LENGTHS, content, ingest
from tests.data_lake.test_packets import cut_off, in_turn, moving, with_b_frames

SIDE = "observation.images.side"


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    return write_v2(tmp_path / "v2", LENGTHS)


def findings(root: Path) -> list[tuple[str, int | None]]:
    items = json.loads((root.parent / f"{root.name}-out/findings.json").read_text())
    return [(item["code"], item["episode"]) for item in items]


def break_footer(source: Path) -> None:
    path = source / "data/chunk-000/episode_000001.parquet"
    os.truncate(path, path.stat().st_size - 300)


def swap_videos(source: Path) -> None:
    """D10: seen by length only."""
    one, other = (source / f"videos/chunk-000/{CAMERA}/episode_{number:06d}.mp4" for number in (0, 1))
    first = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(first)


def rows_file(source: Path, number: int) -> Path:
    return source / f"data/chunk-000/episode_{number:06d}.parquet"


def video_file(source: Path, number: int) -> Path:
    return source / f"videos/chunk-000/{CAMERA}/episode_{number:06d}.mp4"


DEFECTS: dict[str, tuple[Callable[[Path], object], dict[int, str]]] = {
    "no footer": (break_footer, {1: "LAKE-007"}),
    "pointer": (lambda s: rows_file(s, 2).write_text("version https://git-lfs.github.com/spec/v1\n"), {2: "LAKE-008"}),
    "pointer to a video": (
        lambda s: video_file(s, 2).write_text("version https://git-lfs.github.com/spec/v1\n"),
        {2: "LAKE-008"},
    ),
    "no rows file": (lambda s: rows_file(s, 0).unlink(), {0: "LAKE-009"}),
    "no video": (lambda s: video_file(s, 0).unlink(), {0: "LAKE-010"}),
    "swapped videos": (swap_videos, {0: "LAKE-011", 1: "LAKE-011"}),
    "wrong length": (lambda s: change_episodes(s, 0, length=9), {0: "LAKE-012"}),
    "length zero": (lambda s: change_episodes(s, 1, length=0), {1: "LAKE-012"}),
    "not finite": (
        lambda s: change_rows(rows_file(s, 1), action=[[0.0, 0.0]] * 11 + [[0.0, float("nan")]]),
        {1: "LAKE-016"},
    ),
    "unordered": (
        lambda s: change_rows(rows_file(s, 0), timestamp=[0.0, 0.3, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8]),
        {0: "LAKE-017"},
    ),
    "repeated frame": (lambda s: change_rows(rows_file(s, 0), frame_index=[0, 1, 1, 3, 4, 5, 6, 7]), {0: "LAKE-018"}),
    "other type": (lambda s: change_rows(rows_file(s, 0), action=["up"] * 8), {0: "LAKE-019"}),
    "other width": (lambda s: change_rows(rows_file(s, 0), action=[[0.0] * 5] * 8), {0: "LAKE-019"}),
    "other episode": (lambda s: change_rows(rows_file(s, 2), episode_index=[5] * 10), {2: "LAKE-021"}),
    "garbage": (lambda s: rows_file(s, 2).write_bytes(b"PAR1" + b"\0" * 500 + b"PAR1"), {2: "LAKE-022"}),
    "cut video": (lambda s: os.truncate(video_file(s, 2), 900), {2: "LAKE-023"}),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_bad_episode_goes_to_quarantine_and_the_others_do_not(defect: str, v2: Path, tmp_path: Path) -> None:
    spoil, expected = DEFECTS[defect]
    spoil(v2)
    root = tmp_path / "cart"
    done = ingest(v2, root)
    kept = [number for number in range(3) if number not in expected]
    assert [each["source_episode"] for each in done.view["episodes"]] == kept
    assert done.num_episodes + done.num_quarantined == 3
    quarantine = json.loads((tmp_path / "cart-out/quarantine.json").read_text())
    assert {bad["episode"]: bad["findings"][0]["code"] for bad in quarantine} == expected
    for bad in quarantine:
        assert bad["done"] and all(item["fix"] and item["message"] for item in bad["findings"])
    lengths = [LENGTHS[number] for number in kept]
    assert content(root)["frames"]["index"] == list(range(sum(lengths)))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"from_timestamp": 2.5, "to_timestamp": 3.5}, "LAKE-013"),
        ({"to_timestamp": 2.7}, "LAKE-015"),
        ({"length": 11}, "LAKE-012"),
        ({"file_index": 4}, "LAKE-010"),
    ],
)
def test_a_bad_span(changes: dict[str, Any], code: str, v2: Path, tmp_path: Path) -> None:
    v3 = write_v3(tmp_path / "v3", v2, LENGTHS)
    change_episode_table(v3, 2, **changes)
    done = ingest(v3, tmp_path / "cart")
    assert (done.num_episodes, done.num_quarantined) == (2, 1)
    assert code in [found for found, episode in findings(tmp_path / "cart") if episode == 2]


def told_of(root: Path) -> list[dict[str, Any]]:
    return json.loads((root.parent / f"{root.name}-out/findings.json").read_text())


@pytest.mark.parametrize(("lost", "episodes"), [((SIDE,), (0, 1, 2)), ((CAMERA, SIDE), (0, 1, 2)), ((SIDE,), (1,))])
def test_a_camera_whose_file_is_lost(lost: tuple[str, ...], episodes: tuple[int, ...], tmp_path: Path) -> None:
    """v3.0 names the file of each episode's camera: it is asked for again, whether others are there or not."""
    v2 = write_v2(tmp_path / "v2", LENGTHS, (CAMERA, SIDE))
    without = [(number, SIDE) for number in range(3) if number not in episodes]
    v3 = write_v3(tmp_path / "v3", v2, LENGTHS, (CAMERA, SIDE), without=without)
    for camera in lost:
        (v3 / f"videos/{camera}/chunk-000/file-000.mp4").unlink()
    examined = doctor(str(v3))
    found = [item for item in examined["findings"] if item["code"] == "LAKE-010"]
    assert {item["camera"] for item in found} == set(lost)
    assert all(item["file"].endswith("file-000.mp4") and "copy the file again" in item["fix"] for item in found)
    assert examined["episodes"] == {"in": 3, "ok": 3 - len(episodes), "quarantined": len(episodes)}


def test_a_source_that_was_given_away_without_videos(tmp_path: Path) -> None:
    v3 = write_v3(tmp_path / "v3", write_v2(tmp_path / "v2", LENGTHS), LENGTHS)
    shutil.rmtree(v3 / "videos")
    done = ingest(v3, tmp_path / "cart")
    assert (done.num_episodes, "LAKE-045") == (3, next(item.code for item in done.findings if item.camera))


def test_what_is_missing_of_v2_is_named(v2: Path, tmp_path: Path) -> None:
    rows_file(v2, 0).unlink()
    video_file(v2, 2).unlink()
    ingest(v2, tmp_path / "cart")
    files = {item["code"]: item["file"] for item in told_of(tmp_path / "cart") if item["severity"] == "error"}
    expected = {"LAKE-009": rows_file(v2, 0), "LAKE-010": video_file(v2, 2)}
    assert files == {code: path.relative_to(v2).as_posix() for code, path in expected.items()}


def noise(count: int) -> list[np.ndarray]:
    return [image[:SIZE, :SIZE] for image in moving(count)]


@pytest.mark.parametrize("cut", [3, 5])
def test_frames_that_are_cut_off_are_no_frames(cut: int, v2: Path, tmp_path: Path) -> None:
    """Rows for what is shown go in and are read; rows for all packets do not fit."""
    for number, rows in ((0, LENGTHS[0]), (1, LENGTHS[1] - cut)):
        content = with_b_frames(noise(rows + cut), fps=FPS)
        video_file(v2, number).write_bytes(cut_off(content, cut, fps=FPS))
    done = ingest(v2, tmp_path / "datasets/cart")
    assert [each["source_episode"] for each in done.view["episodes"]] == [0, 2]
    assert ("LAKE-011", 1) in findings(tmp_path / "datasets/cart")
    reader = FrameReader(open_version(tmp_path, "cart"))
    (shown,) = reader.batch(range(LENGTHS[0])).images.values()
    with_all = in_turn(with_b_frames(noise(LENGTHS[0] + cut), fps=FPS), LENGTHS[0] + cut, fps=FPS)
    assert np.array_equal(shown, with_all[cut:])
