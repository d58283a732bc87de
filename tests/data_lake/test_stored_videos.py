"""Videos of a version by their place: opened lazily, named when they are not there, held to what was recorded."""

import shutil
from pathlib import Path

import pytest

from data_lake import stored_videos
from data_lake.preprocess import preprocess_view
from data_lake.stored_videos import open_video, open_videos
from errors import UserError
from tests.data_lake.conftest import CodedLake
from tests.data_lake.lake_fixture import request_for


def test_a_video_is_a_seekable_file(coded: CodedLake) -> None:
    with open_video(str(coded.dataset / "videos.lance"), 1, "observation.images.top", 0, 3) as file:
        file.seek(4)
        assert file.read(4) == b"ftyp"


def test_a_video_that_is_not_there_is_named(coded: CodedLake) -> None:
    with pytest.raises(UserError, match=r"PREP-006.*'observation.images.top', chunk 0, file 4"):
        open_video(str(coded.dataset / "videos.lance"), 1, "observation.images.top", 0, 4)


@pytest.mark.parametrize("images", ["decoded", "video"])
def test_nothing_is_learnt_from_a_changed_video(images: str, coded: CodedLake, tmp_path: Path) -> None:
    """One byte inside a picture: it would be decoded all the same."""
    dataset = shutil.copytree(coded.dataset, tmp_path / "dataset")
    for path in (path for path in (dataset / "videos.lance/data").rglob("*") if path.is_file()):
        content = bytearray(path.read_bytes())
        if (place := content.find(b"mdat")) > 0:
            content[place + 40] ^= 1
            path.write_bytes(content)
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError, match=r"LAKE-073(?s:.*)episode 0 · view (top|corner)"):
        preprocess_view(coded.view, dataset, request_for(images=images), tmp_path / "out")


def test_a_video_is_read_whole_once(coded: CodedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_videos, "_as_recorded", set())
    videos, seen = open_videos(str(coded.dataset / "videos.lance"), 1), []
    monkeypatch.setattr(stored_videos, "content_of", lambda file: seen.append(file) or videos.recorded[0])
    for _ in range(3):
        videos.ensure_recorded(0, "episode 0")
    assert len(seen) == 1
