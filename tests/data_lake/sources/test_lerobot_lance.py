"""LeRobot's native Lance folders: the same episodes as the folder that they were made of; other layouts are named."""

import shutil
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from data_lake.examine import Tally, examine
from data_lake.published import publish_lance
from data_lake.sources import open_source
from data_lake.sources.lerobot_lance import LeRobotLance
from data_lake.version import open_version
from errors import UserError
from tests.data_lake.recordings import CAMERA, write_v2
from tests.data_lake.seen import ingest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ingest(write_v2(tmp_path / "source"), tmp_path / "lake/datasets/cart")
    return publish_lance(open_version(tmp_path / "lake", "cart"))[0]


def hashes(path: Path) -> list[str]:
    return [each.content_hash for each in examine(open_source(path), workers=2, tally=Tally())]


def test_the_same_content_as_the_folder_it_came_from(folder: Path, tmp_path: Path) -> None:
    """Pain D13 too: both go into one data set, where the second is all known already."""
    assert hashes(folder) == hashes(tmp_path / "source") and all(hashes(folder))
    assert open_source(folder).card.format == "lerobot-lance"
    again = ingest(folder, tmp_path / "lake/datasets/cart")
    assert (again.num_new, again.num_episodes) == (0, 3)


def test_episodes_that_show_the_same_share_their_video(tmp_path: Path) -> None:
    """As our own lake stores it; what only overlaps is nobody's."""
    source = write_v2(tmp_path / "source", lengths=(8, 8, 10))
    videos = source / f"videos/chunk-000/{CAMERA}"
    shutil.copyfile(videos / "episode_000000.mp4", videos / "episode_000001.mp4")
    ingest(source, tmp_path / "lake/datasets/cart")
    out, _ = publish_lance(open_version(tmp_path / "lake", "cart"))
    assert [[item.code for item in episode.findings] for episode in LeRobotLance(out).episodes()] == [[], [], []]
    assert hashes(out) == hashes(source)


def test_rows_that_are_not_in_order_keep_their_episode(folder: Path) -> None:
    """Pain D05: an episode's rows are those that carry its number, wherever they lie."""
    path = str(folder / "frames.lance")
    table = lance.dataset(path).to_table()
    mixed = table.take(np.argsort(table["frame_index"].to_numpy(), kind="stable"))
    shutil.rmtree(path)
    lance.write_dataset(mixed, path)
    for episode, length in zip(LeRobotLance(folder).episodes(), (8, 12, 10), strict=True):
        assert episode.rows is not None and set(episode.rows["episode_index"].to_pylist()) == {episode.source_episode}
        assert episode.rows["frame_index"].to_pylist() == list(range(length))


def test_a_stored_video_that_is_gone_is_named(folder: Path) -> None:
    table = lance.dataset(str(folder / "videos.lance"))
    table.delete("file_index = 1")
    found = list(examine(LeRobotLance(folder), workers=1, tally=Tally()))
    assert [each.is_ok for each in found] == [True, False, True]
    (missing,) = found[1].findings
    assert (missing.code, missing.episode, missing.camera) == ("LAKE-010", 1, CAMERA)


def test_rows_of_unlisted_episodes_are_said_once(folder: Path) -> None:
    path = str(folder / "frames.lance")
    table = lance.dataset(path).to_table()
    stray = table.slice(0, 2).set_column(
        table.column_names.index("episode_index"), "episode_index", pa.array([7, 7], pa.int64())
    )
    lance.write_dataset(stray, path, mode="append")
    found = [item for episode in LeRobotLance(folder).episodes() for item in episode.findings]
    assert [(item.code, item.episode) for item in found] == [("LAKE-027", 7)]


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda folder: shutil.rmtree(folder / "meta"), "LAKE-135", "without a meta/info.json"),
        (lambda folder: shutil.rmtree(folder / "frames.lance/_versions"), "LAKE-136", "cannot be opened"),
        (lambda folder: shutil.rmtree(folder / "meta/episodes"), "LAKE-004", "episodes"),
    ],
)
def test_what_is_broken_is_named(folder: Path, change: object, code: str, words: str) -> None:
    assert callable(change)
    change(folder)
    with pytest.raises(UserError, match=words) as refused:
        open_source(folder)
    assert refused.value.code == code


def test_another_layout_in_the_wild_is_named_not_guessed(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "frames.lance", tmp_path / "wild/data/frames.lance")
    with pytest.raises(UserError, match="tables under data/") as refused:
        open_source(tmp_path / "wild")
    assert refused.value.code == "LAKE-135" and "lerobot-lance-convert" in refused.value.next_step


def test_a_data_set_of_a_lake_is_told_apart(folder: Path) -> None:
    with pytest.raises(UserError, match="a data set of a lake") as refused:
        open_source(folder.parents[1])
    assert refused.value.code == "LAKE-135" and "vlaloop path cart" in refused.value.next_step
