"""The one examination: order, content hashes, what only shows over all episodes."""

import shutil
from pathlib import Path

import pytest

from data_lake.examine import Examined, examine
from data_lake.sources import open_source
from data_lake.tally import Tally
from tests.data_lake.recordings import CAMERA, change_rows, write_v2


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_v2(tmp_path / "v2", (6, 7, 6, 7, 6, 7, 6))


def all_of(path: Path, workers: int = 2, tally: Tally | None = None) -> list[Examined]:
    return list(examine(open_source(path), workers=workers, tally=tally or Tally()))


@pytest.mark.parametrize("workers", [1, 3])
def test_order_and_hashes_do_not_depend_on_threads(workers: int, source: Path) -> None:
    found = all_of(source, workers)
    assert [item.episode.source_episode for item in found] == list(range(7))
    assert all(item.is_ok for item in found)
    assert [item.content_hash for item in found] == [item.content_hash for item in all_of(source)]
    assert len({item.content_hash for item in found}) == 7


def test_rows_and_pixels_are_both_content(source: Path) -> None:
    before = [item.content_hash for item in all_of(source)]
    change_rows(source / "data/chunk-000/episode_000000.parquet", action=[[0.0, 1.0]] * 6)
    videos = [source / f"videos/chunk-000/{CAMERA}/episode_{number:06d}.mp4" for number in (2, 4)]
    shutil.copy(videos[1], videos[0])
    after = all_of(source)
    changed = [number for number in range(7) if after[number].content_hash != before[number]]
    assert changed == [0, 2]


def test_the_same_video_twice_is_said(source: Path) -> None:
    videos = [source / f"videos/chunk-000/{CAMERA}/episode_{number:06d}.mp4" for number in (2, 4)]
    shutil.copy(videos[0], videos[1])
    found, tally = all_of(source), Tally()
    repeated = [
        tally.repeats(each.episode.source_episode, each.recording, each.content_hash, each.digests) for each in found
    ]
    assert [(item.episode, item.code) for several in repeated for item in several] == [(4, "LAKE-033")]
    assert all(each.is_ok and not each.findings for each in found)


def test_dimensions_that_never_change(source: Path) -> None:
    tally = Tally()
    all_of(source, tally=tally)
    found = [
        item.message.split(": ")[1] for item in tally.findings(open_source(source).card) if item.code == "LAKE-052"
    ]
    assert found == ["1 of 3 in observation_state (2)"]


def test_check_is_called_between_episodes(source: Path) -> None:
    calls: list[int] = []
    list(examine(open_source(source), workers=1, tally=Tally(), check=lambda: calls.append(1)))
    assert len(calls) == 7
