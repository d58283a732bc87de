"""Saved views: revisions that are put once, the same choice saved twice is one, and writers that race lose nothing."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from data_lake.curation import Choice
from data_lake.saved_views import SavedView, open_saved, revisions, save, saved_views
from errors import UserError

LONG = Choice(where="length > 8")


def keep(root: Path, name: str, choice: Choice) -> SavedView:
    return save(root, name, choice, who="me", version=3, num_episodes=2)


def test_a_changed_choice_is_a_new_revision(tmp_path: Path) -> None:
    first = keep(tmp_path, "long", LONG)
    again = keep(tmp_path, "long", LONG)
    other = keep(tmp_path, "long", Choice(where="length > 8", exclude="3"))
    assert (first.revision, again, other.revision) == (1, first, 2)
    assert open_saved(tmp_path, "long") == other and open_saved(tmp_path, "long", 1) == first
    assert keep(tmp_path, "long", LONG).revision == 3  # back to what it was: history tells so
    assert [view.title for view in saved_views(tmp_path)[0]] == ["long@3"]


def test_of_several_writers_each_gets_a_revision_of_its_own(tmp_path: Path) -> None:
    choices = [Choice(where=f"length > {number}") for number in range(12)]
    with ThreadPoolExecutor(4) as pool:
        saved = list(pool.map(lambda choice: keep(tmp_path, "v", choice), choices))
    assert revisions(tmp_path, "v") == list(range(1, 13))
    assert all(open_saved(tmp_path, "v", view.revision) == view for view in saved)


def test_a_view_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    keep(tmp_path, "long", LONG)
    for name, revision in (("short", None), ("long", 2)):
        with pytest.raises(UserError, match=r"(?s)LAKE-205.*long@1"):
            open_saved(tmp_path, name, revision)


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden"])
def test_names_lead_nowhere_else(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="LAKE-212"):
        keep(tmp_path, name, LONG)
    assert list(tmp_path.iterdir()) == []


def test_a_torn_file_is_named(tmp_path: Path) -> None:
    keep(tmp_path, "long", LONG)
    (tmp_path / "views/long/000001.json").write_text('{"name": "lo')
    with pytest.raises(UserError, match="(?s)LAKE-080.*000001.json"):
        open_saved(tmp_path, "long")
    short = keep(tmp_path, "short", Choice(where="length < 8"))
    found, (wrong,) = saved_views(tmp_path)
    assert found == [short] and "views/long/000001.json" in wrong.where, "the others are still seen"
