"""Cameras of dtype `image` in both layouts: each row its own picture, to the last bit; odd ones are named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_lake.examine import examine
from data_lake.sources.episode import Episode, Pictures
from data_lake.sources.lerobot import LeRobotFolder
from data_lake.tally import Tally
from tests.data_lake.recordings import CAMERA, add_pictures, change_info, change_rows, encoded, write_v2, write_v3

LENGTHS = (8, 12, 10)
ROWS = "data/chunk-000/episode_000001.parquet"


def noise(episode: int, frame: int) -> np.ndarray:
    return np.random.default_rng((episode, frame)).integers(0, 256, (6, 9, 3), np.uint8)


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    return add_pictures(write_v2(tmp_path / "v2", cameras=()), noise)


@pytest.fixture
def v3(tmp_path: Path) -> Path:
    return add_pictures(write_v3(tmp_path / "v3", write_v2(tmp_path / "plain", cameras=()), cameras=()), noise)


def by_number(path: Path) -> dict[int, Episode]:
    return {item.source_episode: item for item in LeRobotFolder(path).episodes()}


def shown(episode: Episode, camera: str = CAMERA) -> np.ndarray:
    view = episode.views[camera]
    assert isinstance(view, Pictures)
    return np.stack(list(view.frames()))


def errors(path: Path) -> list[tuple[str, int | None, str | None]]:
    found = [item for each in examine(LeRobotFolder(path), workers=2, tally=Tally()) for item in each.findings]
    return [(item.code, item.episode, item.camera) for item in found if item.severity == "error"]


@pytest.mark.parametrize("layout", ["v2", "v3"])
def test_each_row_has_its_own_picture(layout: str, request: pytest.FixtureRequest) -> None:
    path = request.getfixturevalue(layout)
    assert LeRobotFolder(path).card.cameras == (CAMERA,)
    found = by_number(path)
    for number, length in enumerate(LENGTHS):
        expected = np.stack([noise(number, frame) for frame in range(length)])
        assert np.array_equal(shown(found[number]), expected)
        assert np.array_equal(shown(found[number]), expected), "they are read anew"
        rows = found[number].rows
        assert rows is not None and CAMERA not in rows.column_names
        assert found[number].findings == ()


def test_both_layouts_are_the_same_episodes(v2: Path, v3: Path) -> None:
    hashes = [
        [each.content_hash for each in examine(LeRobotFolder(path), workers=2, tally=Tally())] for path in (v2, v3)
    ]
    assert hashes[0] == hashes[1] and all(hashes[0]) and len(set(hashes[0])) == 3


def test_pictures_follow_their_rows_wherever_those_lie(v3: Path) -> None:
    """D04: boundaries in the metadata say nothing; a row brings its picture along."""
    path = v3 / "data/chunk-000/file-000.parquet"
    table = pq.read_table(path)
    pq.write_table(table.take([*range(8, 20), *range(20, 30, 2), *range(8), *range(21, 30, 2)]), path)
    found = by_number(v3)
    assert np.array_equal(shown(found[1]), np.stack([noise(1, frame) for frame in range(12)]))
    assert np.array_equal(shown(found[2]), np.stack([noise(2, frame) for frame in (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)]))


def test_red_is_red_in_jpeg_too(tmp_path: Path) -> None:
    """D15."""
    red = np.zeros((16, 16, 3), np.uint8) + np.array([254, 0, 0], np.uint8)
    path = add_pictures(write_v2(tmp_path / "v2", cameras=()), lambda *_: red, form="JPEG")
    assert np.array_equal(shown(by_number(path)[0])[0], red)
    assert LeRobotFolder(path).card.by_format == {"colour_order": "rgb", "image_orientation": "upright"}


def test_cameras_of_both_kinds(tmp_path: Path) -> None:
    side = "observation.images.side"
    path = add_pictures(write_v2(tmp_path / "v2"), noise, side)
    assert LeRobotFolder(path).card.cameras == (CAMERA, side)
    assert errors(path) == []
    assert sorted(by_number(path)[0].views) == [CAMERA, side]


def test_without_declared_features_pictures_are_known_by_their_form(v2: Path) -> None:
    change_info(v2, features=...)
    assert np.array_equal(shown(by_number(v2)[0])[3], noise(0, 3))


def test_a_depth_camera_is_left_out(v2: Path) -> None:
    info = json.loads((v2 / "meta/info.json").read_text())
    info["features"]["observation.depth"] = {"dtype": "image", "shape": [6, 9, 1]}
    change_info(v2, features=info["features"])
    card = LeRobotFolder(v2).card
    assert [(item.code, item.camera) for item in card.findings] == [("LAKE-115", "observation.depth")]
    assert card.cameras == (CAMERA,) and errors(v2) == []


def test_a_camera_without_a_column(v2: Path) -> None:
    table = pq.read_table(v2 / ROWS)
    pq.write_table(table.drop_columns([CAMERA]), v2 / ROWS)
    assert errors(v2) == [("LAKE-195", 1, CAMERA)]


@pytest.mark.parametrize(
    ("put", "code"),
    [
        (lambda row, stored: stored if row != 4 else {"bytes": None, "path": "images/frame_000004.png"}, "LAKE-031"),
        (lambda row, stored: stored if row != 4 else None, "LAKE-031"),
        (lambda row, stored: stored if row != 4 else {"bytes": b"no picture", "path": None}, "LAKE-031"),
        (lambda row, stored: stored if row != 4 else {**stored, "bytes": stored["bytes"][:60]}, "LAKE-031"),
        (lambda row, stored: stored if row != 4 else {**stored, "bytes": encoded(noise(0, 0)[:5])}, "LAKE-031"),
        (lambda row, stored: {**stored, "bytes": encoded(np.zeros((6, 9), np.uint8))}, "LAKE-031"),
        (lambda row, stored: stored["bytes"], "LAKE-019"),
        (lambda row, stored: stored["path"], "LAKE-019"),
    ],
    ids=["path", "null", "no picture", "cut short", "another size", "grey", "plain bytes", "paths"],
)
def test_what_is_no_picture_costs_its_episode(put: Callable[[int, dict[str, Any]], Any], code: str, v2: Path) -> None:
    column = pq.read_table(v2 / ROWS)[CAMERA]
    values = [put(row, stored) for row, stored in enumerate(column.to_pylist())]
    kind = column.type if isinstance(values[0], dict) else None
    change_rows(v2 / ROWS, **{CAMERA.replace(".", "__"): pa.array(values, kind)})
    assert [(found, episode) for found, episode, _ in errors(v2)] == [(code, 1)]


def test_metadata_of_two_such_cameras_without_data(shared_data: Path) -> None:
    """Written by LeRobot 0.6 itself; what is missing is its data, not the cameras' dtype."""
    path = shared_data / "lerobot-v3.0-meta-only-image-dtype"
    assert LeRobotFolder(path).card.cameras == ("observation.images.front", "observation.images.wrist")
    assert {code for code, _, _ in errors(path)} == {"LAKE-009"}
