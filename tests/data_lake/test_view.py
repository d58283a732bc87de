"""The view that ingest wrote, and the videos that it names."""

import json
from pathlib import Path

import pytest

from data_lake.view import Span, open_video, read_view, view_bytes
from errors import UserError
from tests.data_lake.conftest import CodedLake


def test_episodes_of_a_view(coded: CodedLake) -> None:
    """Seven episodes; the second one was recorded by one camera, after nine frames of the first."""
    episode = coded.view.episodes[1]
    assert (episode.source_episode, episode.length, episode.from_index) == (11, 6, 9)
    assert episode.spans == (
        Span(
            view="corner",
            video_key="observation.images.corner",
            chunk_index=0,
            file_index=3,
            from_s=9 / 80,
            to_s=9 / 80 + 6 / 80,
        ),
    )
    assert coded.view.meaning["fps"] == 80.0


def test_a_video_is_a_seekable_file(coded: CodedLake) -> None:
    with open_video(str(coded.dataset / "videos.lance"), 1, "observation.images.top", 0, 3) as file:
        file.seek(4)
        assert file.read(4) == b"ftyp"


def test_a_video_that_is_not_there_is_named(coded: CodedLake) -> None:
    with pytest.raises(UserError, match=r"PREP-006.*'observation.images.top', chunk 0, file 4"):
        open_video(str(coded.dataset / "videos.lance"), 1, "observation.images.top", 0, 4)


def test_a_written_view_is_read_back_and_has_a_line_per_episode(coded: CodedLake, tmp_path: Path) -> None:
    view = json.loads((coded.view_folder / "episodes.json").read_text())
    (tmp_path / "episodes.json").write_bytes(view_bytes(view))
    assert read_view(tmp_path) == coded.view
    assert json.loads(view_bytes(view)) == view and json.loads(view_bytes(view | {"episodes": []}))["episodes"] == []
    lines = view_bytes(view).decode().splitlines()
    assert len([line for line in lines if '"episode_index"' in line]) == len(coded.view.episodes)
