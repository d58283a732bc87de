"""A version by its name: the newest, or that one; what is no version is said."""

from pathlib import Path

import pytest

from data_lake.version import open_version
from errors import UserError
from tests.data_lake.recordings import CAMERA, TASKS, write_v2
from tests.data_lake.seen import ingest


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for number, lengths in enumerate(((8,), (8, 12))):
        ingest(write_v2(tmp_path / f"source-{number}", lengths), tmp_path / "lake/datasets/cart")
    return tmp_path / "lake"


def test_newest_or_named(lake: Path) -> None:
    newest, first = open_version(lake, "cart"), open_version(lake, "cart@1")
    assert (newest.name, first.name) == ("cart@2", "cart@1")
    assert [episode["length"] for episode in newest.episodes] == [8, 12]
    assert [episode["length"] for episode in first.episodes] == [8]
    assert (first.table("frames").count_rows(), newest.table("frames").count_rows()) == (8, 20)
    assert newest.cameras == (CAMERA,) and newest.tasks == {text: number for number, text in enumerate(TASKS)}
    assert {"observation.state", "action", "timestamp"} < set(newest.columns) and CAMERA not in newest.columns


def test_a_lake_in_words_is_the_same(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lake.parent)
    for named in (str(lake), "lake", "./lake"):
        assert open_version(named, "cart@1").manifest == open_version(lake, "cart@1").manifest


@pytest.mark.parametrize(
    ("named", "code"), [("cart@3", "LAKE-002"), ("car", "LAKE-002"), ("cart@x", "LAKE-184"), ("../cart", "LAKE-034")]
)
def test_no_such_version(lake: Path, named: str, code: str) -> None:
    with pytest.raises(UserError) as error:
        open_version(lake, named)
    assert error.value.code == code
