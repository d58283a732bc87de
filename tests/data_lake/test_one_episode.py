"""One episode by the lake's number or its source's: its rows, its part of a video, where it came from."""

from pathlib import Path

import numpy as np
import pytest
from blake3 import blake3

from data_lake.one_episode import find_episodes, numbers_of
from data_lake.version import DatasetVersion, open_version
from errors import UserError
from tests.data_lake.recordings import CAMERA, TASKS, rows_of, write_v2
from tests.data_lake.seen import ingest


@pytest.fixture(scope="module")
def version(tmp_path_factory: pytest.TempPathFactory) -> DatasetVersion:
    """Two sources; both have an episode 0, of other lengths."""
    root = tmp_path_factory.mktemp("one")
    for number, lengths in enumerate(((8, 12), (9,))):
        ingest(write_v2(root / f"source-{number}", lengths), root / "lake/datasets/cart")
    return open_version(root / "lake", "cart")


def test_by_the_lakes_number(version: DatasetVersion) -> None:
    (found,) = find_episodes(version, episode=1)
    assert (found.from_index, found.to_index, found.length, found.seconds) == (8, 20, 12, 1.2)
    assert (found.source, found.source_episode, found.instruction) == ("source-0", 1, TASKS[1])
    (part,) = found.videos
    assert (part.span.video_key, part.span.from_s, part.span.to_s) == (CAMERA, 0.0, 1.2)
    assert part.file == f"videos/{CAMERA}/chunk-000/file-001.mp4"
    video = sorted((version.root.parents[2] / "source-0").rglob("*.mp4"))[1].read_bytes()
    assert (part.num_bytes, part.blake3) == (len(video), blake3(video).hexdigest())


def test_by_the_sources_number_all_that_have_it(version: DatasetVersion) -> None:
    found = find_episodes(version, source_episode="0")
    assert [(each.episode_index, each.source) for each in found] == [(0, "source-0"), (2, "source-1")]


def test_its_rows_are_those_of_the_source(version: DatasetVersion) -> None:
    (found,) = find_episodes(version, episode=1)
    recorded = np.stack(rows_of(1, 12, 8)["observation.state"].to_pylist())
    assert np.array_equal(numbers_of(version, found, "observation.state"), recorded)


def test_none_is_said(version: DatasetVersion, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"LAKE-190.*episode_index 3\b[\s\S]*from 0 to 2"):
        find_episodes(version, episode=3)
    with pytest.raises(UserError, match=r"LAKE-190.*source_episode 2\b"):
        find_episodes(version, source_episode="2")
