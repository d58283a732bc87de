"""The v3.0 folder: what the format wants, what is declared beside it, statistics by head."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from data_lake.pictures import LosslessVideo
from data_lake.sources import open_source
from tasks.lerobot_folder import FolderLayout, _numbers, _pictures, write_folder
from tasks.recorder import Episode

LAYOUT = FolderLayout(
    fps=80.0,
    robot_type="metaworld_sawyer",
    views={"top": (32, 32), "corner": (32, 32)},
    state_names=("x", "y", "z", "gripper"),
    action_names=("dx", "dy", "dz", "effort"),
    declared={"embodiment": "metaworld_sawyer", "render_every": 4},
)


def episode(folder: Path, seed: int, steps: int, views: tuple[str, ...] = ("top", "corner")) -> Episode:
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    levels = {}
    for view in views:
        video = LosslessVideo(folder / f"{view}.mp4", 80.0)
        for _ in range(steps):
            video.add(np.full((32, 32, 3), 51 * seed, np.uint8))
        video.close()
        levels[view] = np.zeros((3, 256), np.int64)
        levels[view][:, 51 * seed] = steps * 32 * 32
    rows = {name: random.normal(size=(steps, 4)).astype(np.float32) for name in ("state", "action", "executed")}
    rows["success"] = np.arange(steps) == steps - 1
    videos = {view: folder / f"{view}.mp4" for view in views}
    return Episode(seed=seed, success=True, steps=steps, simulator={}, rows=rows, videos=videos, levels=levels)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    episodes = [
        ("open the drawer", episode(tmp_path / "a", 1, 5, ("top",))),
        ("open the drawer", episode(tmp_path / "b", 2, 7)),
        ("press", episode(tmp_path / "c", 3, 4)),
    ]
    assert write_folder(tmp_path / "set", episodes, LAYOUT) == 16
    return tmp_path / "set"


def lines(folder: Path) -> list[dict[str, Any]]:
    return pq.read_table(folder / "meta/episodes/chunk-000/file-000.parquet").to_pylist()


def test_info_says_what_is_there(folder: Path) -> None:
    told = json.loads((folder / "meta/info.json").read_text())
    assert (told["codebase_version"], told["fps"], told["total_episodes"]) == ("v3.0", 80, 3)
    assert (told["total_frames"], told["total_tasks"], told["splits"]) == (16, 2, {"train": "0:3"})
    assert told["features"]["observation.images.top"]["shape"] == [32, 32, 3]
    assert told["features"]["action.executed"]["names"] == ["dx", "dy", "dz", "effort"]
    assert told["vlaloop"] == {"embodiment": "metaworld_sawyer", "render_every": 4}


def test_rows_are_numbered_as_the_format_wants(folder: Path) -> None:
    table = pq.read_table(folder / "data/chunk-000/file-000.parquet")
    assert table["index"].to_pylist() == list(range(16))
    assert table["episode_index"].to_pylist() == [0] * 5 + [1] * 7 + [2] * 4
    assert table["task_index"].to_pylist() == [0] * 12 + [1] * 4
    assert table["timestamp"].to_pylist()[5:8] == pytest.approx([0, 1 / 80, 2 / 80])
    assert sum(table["next.success"].to_pylist()) == 3
    assert str(table.schema.field("action").type) == "fixed_size_list<element: float>[4]"
    tasks = pq.read_table(folder / "meta/tasks.parquet").to_pylist()
    assert tasks == [{"task_index": 0, "task": "open the drawer"}, {"task_index": 1, "task": "press"}]


def test_episodes_point_at_their_videos_and_a_missing_view_is_null(folder: Path) -> None:
    first, second, third = lines(folder)
    assert [(line["dataset_from_index"], line["dataset_to_index"]) for line in lines(folder)] == [
        (0, 5), (5, 12), (12, 16),
    ]  # fmt: skip
    key = "videos/observation.images.corner"
    assert [first[f"{key}/{name}"] for name in ("chunk_index", "file_index", "from_timestamp")] == [None] * 3
    assert [line["videos/observation.images.top/file_index"] for line in (first, second, third)] == [0, 1, 2]
    assert [line[f"{key}/file_index"] for line in (second, third)] == [0, 1]
    assert second[f"{key}/to_timestamp"] == 7 / 80
    assert (folder / "videos/observation.images.corner/chunk-000/file-001.mp4").exists()
    assert not (folder / "videos/observation.images.corner/chunk-000/file-002.mp4").exists()
    assert (second["seed"], second["success"], second["tasks"]) == (2, True, ["open the drawer"])
    assert first["stats/observation.images.corner/mean"] is None
    assert second["stats/observation.images.top/mean"] == [[[0.4]], [[0.4]], [[0.4]]]


def test_statistics_of_the_whole(folder: Path) -> None:
    stats = json.loads((folder / "meta/stats.json").read_text())
    table = pq.read_table(folder / "data/chunk-000/file-000.parquet")
    actions = np.array(table["action"].to_pylist())
    assert stats["action"]["mean"] == pytest.approx(actions.mean(0))
    assert stats["action"]["q99"] == pytest.approx(np.quantile(actions, 0.99, axis=0))
    assert stats["action"]["count"] == [16]
    top = (5 * 0.2 + 7 * 0.4 + 4 * 0.6) / 16
    assert stats["observation.images.top"]["mean"][0][0][0] == pytest.approx(top)


def test_numbers_by_head() -> None:
    found = _numbers(np.array([[0.0, 1], [1, 1], [2, 1], [3, 1]]))
    assert (found["min"], found["max"], found["mean"], found["count"]) == ([0, 1], [3, 1], [1.5, 1], [4])
    assert found["q50"] == [1.5, 1]
    assert found["std"] == pytest.approx([np.sqrt(1.25), 0])


def test_pictures_by_head() -> None:
    levels = np.zeros((3, 256), np.int64)
    levels[:, 0], levels[:, 255] = 3, 1
    found = _pictures(levels, 2, 2)
    assert found["count"] == [1]
    assert [found[name][0][0][0] for name in ("min", "max", "mean", "q50", "q99")] == [0, 1, 0.25, 0, 1]
    assert found["std"][2][0][0] == pytest.approx(np.sqrt(0.1875))


def test_the_lake_reads_it_without_a_complaint(folder: Path) -> None:
    source = open_source(folder)
    assert (source.card.version, source.card.fps, source.card.num_episodes) == ("v3.0", 80.0, 3)
    assert source.card.declared["embodiment"] == "metaworld_sawyer"
    assert list(source.card.findings) == []
    read = list(source.episodes())
    assert [episode.length for episode in read] == [5, 7, 4]
    assert [sorted(episode.views) for episode in read] == [
        ["observation.images.top"], *[["observation.images.corner", "observation.images.top"]] * 2,
    ]  # fmt: skip


def test_columns_are_those_of_the_library(folder: Path, shared_data: Path) -> None:
    """Everything that LeRobot's own writer names for episodes is there, with the same types."""
    reference = pq.read_schema(
        shared_data / "lerobot-v3.0-metaworld-by-lerobot/meta/episodes/chunk-000/file-000.parquet"
    )
    ours = pq.read_schema(folder / "meta/episodes/chunk-000/file-000.parquet")
    for field in reference:
        name = field.name.replace("images.corner2", "images.corner").replace("images.gripperPOV", "images.top")
        assert name in ours.names, name
        assert ours.field(name).type == field.type, name
