"""What is told of a data set is what its sources held: counts, lengths, tasks, cameras, bytes, marks, versions."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from data_lake.edits.compact import compact
from data_lake.edits.merge import merge
from data_lake.edits.relabel import relabel
from data_lake.overview import Mark, Overview, TaskLine, counts_of, marks_of, overview
from data_lake.specs import ReadSpec
from data_lake.version import DatasetVersion, open_version
from tests.data_lake.crashing_ingest import SPEC
from tests.data_lake.recordings import CAMERA, SIZE, TASKS, write_v2
from tests.data_lake.seen import ingest

FIRST, SECOND = (8, 12), (8, 12, 50)
"""Rows of the episodes of two folders; the second holds the first one's episodes again, under the same numbers."""


@pytest.fixture(scope="module")
def version(tmp_path_factory: pytest.TempPathFactory) -> DatasetVersion:
    root = tmp_path_factory.mktemp("overview")
    for number, lengths in enumerate((FIRST, SECOND)):
        ingest(write_v2(root / f"source-{number}", lengths), root / "lake/datasets/cart")
    return open_version(root / "lake", "cart")


@pytest.fixture(scope="module")
def told(version: DatasetVersion) -> Overview:
    return overview(version)


def test_what_it_is(told: Overview) -> None:
    assert (told.dataset, told.version, told.robot, told.embodiment, told.fps) == ("cart", 2, "cart", "cart", 10)
    assert (told.num_episodes, told.num_frames, told.num_videos) == (3, 70, 3)
    assert told.lengths == (8, 12, 50)
    assert told.sources == {"source-0": 2, "source-1": 1}
    (meaning,) = told.meanings
    assert (meaning["colour_order"], meaning["num_episodes"]) == ("rgb", 3)


def test_tasks_by_how_often_they_are_practised(told: Overview) -> None:
    first = TaskLine(task=TASKS[0], task_index=0, num_episodes=2, same_as=None)
    assert told.tasks == (first, TaskLine(task=TASKS[1], task_index=1, num_episodes=1, same_as=None))


def test_a_task_without_an_episode_is_not_told_and_one_spelled_twice_is(version: DatasetVersion) -> None:
    listed = {**version.tasks, "Push  the CUBE.": 2, "fold": 3}
    rows = [dict(row) for row in version.episodes]
    rows[1] |= {"tasks": ["Push  the CUBE."]}
    found = overview(replace(version, tasks=listed, episode_rows=pa.Table.from_pylist(rows))).tasks
    assert {line.task: line.same_as for line in found} == {TASKS[0]: None, "Push  the CUBE.": TASKS[0]}


def test_edits_are_told_with_who_made_them(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for name in ("a", "b"):
        ingest(write_v2(tmp_path / name, (8,) if name == "a" else (8, 12)), lake / "datasets/cart")
    relabel(lake, "cart", [("0", "wait"), ("1", "go on")], who="ada")
    merge(lake, ["cart@3"], "both", who="eve")
    compact(lake, "cart", who="ada")
    notes = [line.notes for line in overview(open_version(lake, "cart")).versions]
    assert notes[1] == ("2 episodes relabelled as 'go on', wait", "by ada")
    assert notes[0][0].startswith("compacted: frames 2 -> 1 files") and notes[0][1] == "by ada"
    assert [line.notes for line in overview(open_version(lake, "both")).versions] == [
        ("the first", "merged from cart@3", "by eve")
    ]


def test_cameras_columns_and_tables(version: DatasetVersion, told: Overview) -> None:
    (camera,) = told.cameras
    assert (camera.camera, camera.view, camera.height, camera.width) == (CAMERA, "front", SIZE, SIZE)
    assert (camera.codec, camera.num_episodes) == ("h264", 3)
    columns = {line.column: line for line in told.columns}
    assert columns["observation.state"].names == ("x", "y", "z")
    assert columns["observation.state"].constant == (2,), "z is 1 in every row, y is the episode's number"
    assert columns["action"].constant == ()
    sizes = {line.table: (line.num_rows, line.num_bytes) for line in told.tables}
    assert {name: rows for name, (rows, _) in sizes.items()} == {"frames": 70, "videos": 3, "meta": 4}
    videos = sum(path.stat().st_size for path in (version.root.parents[2] / "source-1").rglob("*.mp4"))
    assert sizes["videos"][1] == videos, "source-1 holds the videos of both"
    on_disk = sum(path.stat().st_size for path in (version.root / "frames.lance/data").rglob("*.lance"))
    assert sizes["frames"][1] == on_disk


def test_versions_say_what_changed(version: DatasetVersion, told: Overview) -> None:
    assert [(line.version, line.notes) for line in told.versions] == [
        (2, ("+1 episode", "+50 frames", "+1 video")),
        (1, ("the first",)),
    ]
    first = overview(open_version(version.root.parents[1], "cart@1"))
    assert [line.version for line in first.versions] == [1] and first.num_frames == 20


def test_marks(version: DatasetVersion, told: Overview) -> None:
    assert told.marks == (Mark(what="longer than 4 times the median", num_episodes=1, episodes=(2,)),)
    rows = version.episode_rows
    doubled = replace(version, episode_rows=pa.concat_tables([rows, rows]))
    assert marks_of(doubled)["the same recording as an earlier episode"].tolist() == [0, 1, 2]
    place = rows.column_names.index(f"videos/{CAMERA}/chunk_index")
    blind = rows.set_column(place, rows.column_names[place], pa.array([0, None, 0]))
    assert marks_of(replace(version, episode_rows=blind))["no camera front"].tolist() == [1]


@pytest.mark.usefixtures("let_in")
def test_each_meaning_once(tmp_path: Path) -> None:
    root = tmp_path / "lake/datasets/cart"
    ingest(write_v2(tmp_path / "one", (8, 12)), root)
    ingest(write_v2(tmp_path / "two", (5,)), root, replace(SPEC, read=ReadSpec(colour_order="bgr")))
    told = overview(open_version(tmp_path / "lake", "cart"))
    assert [(each["colour_order"], each["num_episodes"]) for each in told.meanings] == [("rgb", 2), ("bgr", 1)]


def test_counts_come_commonest_first() -> None:
    assert counts_of(pa.chunked_array([["a", "b"], ["b", "c", "b"]])) == {"b": 3, "a": 1, "c": 1}
