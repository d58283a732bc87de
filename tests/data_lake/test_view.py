"""The view that ingest wrote, and the videos that it names."""

import json
from pathlib import Path

from data_lake.view import Span, read_view, view_bytes
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


def test_a_written_view_is_read_back_and_has_a_line_per_episode(coded: CodedLake, tmp_path: Path) -> None:
    view = json.loads((coded.view_folder / "episodes.json").read_text())
    (tmp_path / "episodes.json").write_bytes(view_bytes(view))
    assert read_view(tmp_path) == coded.view
    assert json.loads(view_bytes(view)) == view and json.loads(view_bytes(view | {"episodes": []}))["episodes"] == []
    lines = view_bytes(view).decode().splitlines()
    assert len([line for line in lines if '"episode_index"' in line]) == len(coded.view.episodes)
