"""LeRobot folders of three versions, the GR00T dialect, and versions that disagree with their layout."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from data_lake.sources.episode import Episode
from data_lake.sources.lerobot import LeRobotFolder
from data_lake.specs import ReadSpec
from tests.data_lake.recordings import (
    CAMERA,
    FPS,
    TASKS,
    change_episode_table,
    change_episodes,
    change_info,
    change_rows,
    write_v2,
    write_v3,
)


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    return write_v2(tmp_path / "v2")


@pytest.fixture
def v3(tmp_path: Path, v2: Path) -> Path:
    return write_v3(tmp_path / "v3", v2)


def codes(path: Path) -> list[str]:
    return [item.code for item in LeRobotFolder(path).card.findings]


def by_number(path: Path) -> dict[int, Episode]:
    return {item.source_episode: item for item in LeRobotFolder(path).episodes()}


def codes_of(path: Path, number: int) -> list[str]:
    return [item.code for item in by_number(path)[number].findings]


def test_versions_are_named(v2: Path, v3: Path) -> None:
    assert (LeRobotFolder(v2).card.version, LeRobotFolder(v3).card.version) == ("v2.1", "v3.0")


def test_the_layout_is_believed_where_the_version_disagrees(v2: Path, v3: Path) -> None:
    change_info(v2, codebase_version="v3.0")
    change_info(v3, codebase_version="v2.1")
    for path, version in ((v2, "v2.1"), (v3, "v3.0")):
        card = LeRobotFolder(path).card
        assert (card.version, [item.code for item in card.findings]) == (version, ["LAKE-040"])
        assert len(by_number(path)) == 3


def test_no_version_and_no_features(v2: Path) -> None:
    change_info(v2, codebase_version=..., features=...)
    assert sorted(codes(v2)) == ["LAKE-060", "LAKE-061"]
    assert list(by_number(v2)[0].views) == [CAMERA]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"total_videos": 2}, "LAKE-041"),
        ({"total_chunks": 0}, "LAKE-042"),
        ({"splits": {"train": "0:100"}}, "LAKE-043"),
        ({"data_path": "data/chunk-{episode_index:03d}/episode_{episode_index:06d}.parquet"}, "LAKE-044"),
        ({"video_path": "videos/{nothing}/{video_key}.mp4"}, "LAKE-044"),
        ({"total_frames": 1}, "LAKE-054"),
    ],
)
def test_each_defect_of_the_metadata_has_its_code(change: dict[str, object], code: str, v2: Path) -> None:
    change_info(v2, **change)
    assert codes(v2) == [code]
    assert all(item.rows is not None and len(item.views) == 1 for item in by_number(v2).values())


def test_a_declared_camera_without_files(v2: Path, v3: Path) -> None:
    for path in (v2, v3):
        info = json.loads((path / "meta/info.json").read_text())
        info["features"]["observation.images.ghost"] = info["features"][CAMERA]
        (path / "meta/info.json").write_text(json.dumps(info))
        found = [item for item in LeRobotFolder(path).card.findings if item.code == "LAKE-045"]
        assert [item.camera for item in found] == ["observation.images.ghost"]
        assert list(by_number(path)[0].views) == [CAMERA]


def test_a_camera_whose_name_would_be_folders_is_left_out_with_the_reason(v2: Path, v3: Path) -> None:
    """`/` in a key, with and without its files."""
    for path, chunk in ((v2, "chunk-000/{}"), (v3, "{}/chunk-000")):
        info = json.loads((path / "meta/info.json").read_text())
        info["features"]["observation/front"] = info["features"][CAMERA]
        (path / "meta/info.json").write_text(json.dumps(info))
        shutil.copytree(path / "videos" / chunk.format(CAMERA), path / "videos" / chunk.format("observation/front"))
        if path == v3:
            table = pq.read_table(path / "meta/episodes/chunk-000/file-000.parquet")
            for name in [name for name in table.column_names if name.startswith(f"videos/{CAMERA}/")]:
                table = table.append_column(name.replace(CAMERA, "observation/front"), table[name])
            pq.write_table(table, path / "meta/episodes/chunk-000/file-000.parquet")
        (found,) = [item for item in LeRobotFolder(path).card.findings if item.code == "LAKE-045"]
        assert found.camera == "observation/front" and "`/` makes folders" in found.message
        assert list(by_number(path)[0].views) == [CAMERA]


def test_a_missing_video_of_one_episode(v2: Path) -> None:
    (v2 / f"videos/chunk-000/{CAMERA}/episode_000001.mp4").unlink()
    assert (codes_of(v2, 0), codes_of(v2, 1)) == ([], ["LAKE-010"])


def test_missing_and_broken_rows(v2: Path) -> None:
    files = [v2 / f"data/chunk-000/episode_{number:06d}.parquet" for number in range(3)]
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:-200])
    files[2].write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    assert [codes_of(v2, number) for number in range(3)] == [["LAKE-009"], ["LAKE-007"], ["LAKE-008"]]


def test_statistics(v3: Path) -> None:
    (v3 / "meta/stats.json").write_text(json.dumps({"action": {"mean": [0.0]}}))
    assert codes(v3) == ["LAKE-051"]
    (v3 / "meta/stats.json").unlink()
    assert codes(v3) == ["LAKE-053"]


def test_an_unlisted_episode_is_seen(v2: Path) -> None:
    lines = (v2 / "meta/episodes.jsonl").read_text().splitlines()
    (v2 / "meta/episodes.jsonl").write_text("\n".join([lines[0], lines[2]]))
    found = [item for item in LeRobotFolder(v2).card.findings if item.code == "LAKE-027"]
    assert [(item.episode, item.file) for item in found] == [(1, "data/chunk-000/episode_000001.parquet")]
    assert list(by_number(v2)) == [0, 2]


def test_unlisted_rows_of_a_joint_file_are_seen(v3: Path) -> None:
    path = v3 / "meta/episodes/chunk-000/file-000.parquet"
    table = pq.read_table(path)
    pq.write_table(table.filter([True, False, True]), path)
    found = [item for episode in by_number(v3).values() for item in episode.findings]
    assert [(item.code, item.episode) for item in found] == [("LAKE-027", 1)]


def test_rows_of_episodes_may_be_mixed(v3: Path) -> None:
    """Rows of one episode keep their order wherever they lie in the file."""
    path = v3 / "data/chunk-000/file-000.parquet"
    table = pq.read_table(path)
    order = [*range(8, 20), *range(20, 30, 2), *range(8), *range(21, 30, 2)]
    pq.write_table(table.take(order), path)
    found = by_number(v3)
    assert [item.rows.num_rows for item in found.values() if item.rows is not None] == [8, 12, 10]
    rows = found[2].rows
    assert rows is not None and rows["frame_index"].to_pylist() == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]


def test_an_episode_is_a_key_not_a_position(v2: Path, v3: Path) -> None:
    """D05: whatever is missing before it, an episode has its own rows and its own video."""
    (v2 / "data/chunk-000/episode_000000.parquet").unlink()
    path = v3 / "meta/episodes/chunk-000/file-000.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)
    for folder in (v2, v3):
        episode = by_number(folder)[2]
        assert episode.rows is not None and episode.rows["episode_index"].unique().to_pylist() == [2]
        assert episode.rows.num_rows == 10
    assert by_number(v3)[2].views[CAMERA].from_s == pytest.approx(20 / FPS)


def test_each_camera_has_its_own_file_and_span(v2: Path, tmp_path: Path) -> None:
    """D03: the index of the data file says nothing of the video's."""
    second = "observation.images.wrist"
    v2b = write_v2(tmp_path / "two", cameras=(CAMERA, second))
    folder = write_v3(tmp_path / "v3b", v2b, cameras=(CAMERA, second), without=[(0, second)])
    found = by_number(folder)
    assert [sorted(found[number].views) for number in range(3)] == [[CAMERA], [CAMERA, second], [CAMERA, second]]
    assert found[1].views[CAMERA].from_s == pytest.approx(0.8)
    assert found[1].views[second].from_s == 0.0
    assert found[0].findings == ()
    assert found[1].extra == {"seed": 101}


def test_two_episodes_may_not_share_frames(v3: Path) -> None:
    """D02: nothing tells which of two overlapping spans is right, so both are bad."""
    change_episode_table(v3, 2, from_timestamp=1.0, to_timestamp=2.0)
    assert [codes_of(v3, number) for number in range(3)] == [[], ["LAKE-014"], ["LAKE-014"]]


def test_ranges_that_do_not_tile(v3: Path) -> None:
    change_episode_table(v3, 1, dataset_from_index=20, dataset_to_index=32)
    found = LeRobotFolder(v3).card.findings
    assert [(item.code, item.episode) for item in found] == [("LAKE-028", 1)]
    assert by_number(v3)[1].rows is not None


def test_an_episode_listed_twice(v2: Path) -> None:
    path = v2 / "meta/episodes.jsonl"
    path.write_text(path.read_text() + path.read_text().splitlines()[1] + "\n")
    assert codes_of(v2, 1) == ["LAKE-026"]
    assert list(by_number(v2)) == [0, 1, 2]


def groot(path: Path) -> Path:
    """The GR00T dialect: a validity mark among the tasks, and columns of task indices."""
    (path / "meta/modality.json").write_text(
        json.dumps({"annotation": {"human.action.task_description": {}, "human.validity": {}}})
    )
    with (path / "meta/tasks.jsonl").open("a") as file:
        file.write(json.dumps({"task_index": 2, "task": "valid"}) + "\n")
    change_info(path, total_tasks=3)
    for number, length in enumerate((8, 12, 10)):
        change_episodes(path, number, tasks=[TASKS[number % 2], "valid"])
        change_rows(
            path / f"data/chunk-000/episode_{number:06d}.parquet",
            annotation__human__action__task_description=[number % 2] * length,
            annotation__human__validity=[2] * length,
            task_index=[2] * length,
        )
    return path


def test_a_mark_never_becomes_a_prompt(v2: Path) -> None:
    found = by_number(groot(v2))
    assert [found[number].instruction for number in range(3)] == [TASKS[0], TASKS[1], TASKS[0]]
    assert [item.code for item in found[0].findings] == ["LAKE-050"]
    assert LeRobotFolder(v2).card.instruction_source == "annotation.human.action.task_description"


def test_annotations_that_nobody_declares_are_not_believed(v2: Path) -> None:
    """Copied columns may point into another task list."""
    (groot(v2) / "meta/modality.json").unlink()
    source = LeRobotFolder(v2, ReadSpec(ignore_tasks=("valid",)))
    assert [item.instruction for item in source.episodes()] == [TASKS[0], TASKS[1], TASKS[0]]
    assert source.card.instruction_source == "task_index"


def test_an_annotation_that_contradicts_the_episode_is_not_believed(v2: Path) -> None:
    change_rows(groot(v2) / "data/chunk-000/episode_000000.parquet", task_index=[0] * 8,
                annotation__human__action__task_description=[1] * 8)  # fmt: skip
    found = by_number(v2)[0]
    assert found.instruction == TASKS[0]
    assert "LAKE-059" in [item.code for item in found.findings]


@pytest.mark.parametrize(
    ("indices", "code", "row", "said"),
    [
        ([7] * 8, "LAKE-246", 0, "task 7 in 8 of 8 rows"),
        ([0] * 5 + [-1] * 3, "LAKE-246", 5, "task -1 in 3 of 8 rows"),
        ([1] * 3 + [0] * 5, "LAKE-247", 0, f"says {TASKS[1]!r} in 3 of 8 rows"),
        ([0] * 6 + [1] * 2, "LAKE-247", 6, "in 2 of 8 rows"),
        ([1] * 8, "LAKE-059", 0, f"says {TASKS[1]!r} in 8 of 8 rows"),
    ],
)
def test_rows_that_point_at_another_task(indices: list[int], code: str, row: int, said: str, v2: Path) -> None:
    """At none that there is, at two where the episode lists one, or all at another: only the last can be believed."""
    change_rows(v2 / "data/chunk-000/episode_000000.parquet", task_index=indices)
    found = by_number(v2)[0]
    (item,) = (item for item in found.findings if item.code in ("LAKE-059", "LAKE-246", "LAKE-247"))
    assert (item.code, item.row, item.severity) == (code, row, "warning" if code == "LAKE-059" else "error")
    assert said in item.message and f"row {row}" in item.message
    assert code != "LAKE-059" or found.instruction == TASKS[1]


@pytest.mark.parametrize("task", ["", "x" * 10_000_000, "gieß Öl 倒油 🛢️"])
def test_instructions_of_any_kind(task: str, v2: Path) -> None:
    tasks = json.dumps({"task_index": 0, "task": task}) + "\n" + json.dumps({"task_index": 1, "task": TASKS[1]}) + "\n"
    (v2 / "meta/tasks.jsonl").write_text(tasks)
    for number in (0, 2):
        change_episodes(v2, number, tasks=[task])
    expected = {0: "LAKE-024", 10_000_000: "LAKE-030"}.get(len(task))
    assert codes_of(v2, 0) == ([expected] if expected else [])
    assert by_number(v2)[0].instruction == ("" if expected == "LAKE-030" else task)
