"""LeRobot folders whose metadata cannot be read at all."""

from pathlib import Path

import pytest

from data_lake.sources.lerobot import LeRobotFolder
from errors import UserError
from tests.data_lake.recordings import write_v2, write_v3

LENGTHS = (8, 12, 10)


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    return write_v2(tmp_path / "v2", LENGTHS)


@pytest.fixture
def v3(tmp_path: Path, v2: Path) -> Path:
    return write_v3(tmp_path / "v3", v2, LENGTHS)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("info.json", None),
        ("info.json", "{"),
        ("info.json", "[" * 100_000),
        ("info.json", '{"fps": 0, "features": {}}'),
        ("info.json", '{"fps": 10, "features": []}'),
        ("info.json", "version https://git-lfs.github.com/spec/v1\n"),
        ("episodes.jsonl", None),
        ("episodes.jsonl", "not json\n"),
        ("episodes.jsonl", '{"length": 3}\n'),
    ],
)
def test_metadata_that_cannot_be_read(file: str, content: str | None, v2: Path) -> None:
    path = v2 / "meta" / file
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(UserError) as error:
        LeRobotFolder(v2)
    assert error.value.code == "LAKE-004"
    assert str(v2) in error.value.where and error.value.next_step


def test_a_broken_table_of_episodes(v3: Path) -> None:
    path = v3 / "meta/episodes/chunk-000/file-000.parquet"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(UserError) as error:
        LeRobotFolder(v3)
    assert error.value.code == "LAKE-004" and "LAKE-007" in error.value.message
