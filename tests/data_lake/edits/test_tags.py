"""Tags: put once, moved on purpose, and everywhere understood where a version is."""

import threading
from pathlib import Path

import pytest

from data_lake.edits.tags import history, put_tag, tagged, tags
from data_lake.head import look_at_head
from data_lake.published import publish_lance
from data_lake.version import open_version
from errors import UserError
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import ingest


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for number, lengths in enumerate(((8,), (8, 12))):
        ingest(write_v2(tmp_path / f"source-{number}", lengths), tmp_path / "lake/datasets/cart")
    return tmp_path / "lake"


def test_a_tag_is_a_version(lake: Path) -> None:
    root = lake / "datasets/cart"
    assert put_tag(root, "paper", 1, who="ada").number == 1
    assert put_tag(root, "paper", 1, who="bob").who == "ada", "it is as it was"
    assert open_version(lake, "cart@paper").name == "cart@1"
    assert look_at_head(lake, "lake:cart@paper").path == "lake:cart@1", "a run pins the version, not the tag"
    assert publish_lance(open_version(lake, "cart@paper"))[0].name == "000001"


def test_moving_is_said_and_kept(lake: Path) -> None:
    root = lake / "datasets/cart"
    put_tag(root, "best", 1, who="ada")
    with pytest.raises(UserError, match="means version 1") as refused:
        put_tag(root, "best", 2, who="bob")
    assert refused.value.code == "LAKE-183" and "ada" in refused.value.where
    put_tag(root, "best", 2, who="bob", move=True)
    put_tag(root, "best", 1, who="cleo", move=True)
    assert [(tag.number, tag.version, tag.who) for tag in history(root, "best")] == [
        (1, 1, "ada"),
        (2, 2, "bob"),
        (3, 1, "cleo"),
    ]
    assert tagged(root, "best") == 1 and [(tag.name, tag.version) for tag in tags(root)] == [("best", 1)]


def test_of_many_that_move_it_each_is_remembered(lake: Path) -> None:
    root = lake / "datasets/cart"
    threads = [
        threading.Thread(target=put_tag, args=(root, "best", number), kwargs={"who": f"{number}", "move": True})
        for number in range(1, 9)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(tag.version for tag in history(root, "best")) == list(range(1, 9))
    assert [tag.number for tag in history(root, "best")] == list(range(1, 9))


@pytest.mark.parametrize("name", ["7", "..", "a/b", "-x", "", "a@b"])
def test_no_name(lake: Path, name: str) -> None:
    with pytest.raises(UserError) as refused:
        put_tag(lake / "datasets/cart", name, 1, who="ada")
    assert refused.value.code == "LAKE-185"


def test_no_such_tag(lake: Path) -> None:
    put_tag(lake / "datasets/cart", "paper", 1, who="ada")
    with pytest.raises(UserError, match="no tag 'papers'") as refused:
        open_version(lake, "cart@papers")
    assert refused.value.code == "LAKE-184" and "tags: paper" in refused.value.next_step
