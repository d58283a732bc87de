"""Each episode that is held answers for one of the source's: as often as its content is there, under any number."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from data_lake.held import Held

FOLDER = st.lists(st.sampled_from("abcd"), max_size=8)


def row(number: int, content: str, source: str = "folder", **beside: Any) -> dict[str, Any]:
    return {"source_episode": number, "content_hash": content, "source": source, **beside}


def holding(*rows: dict[str, Any]) -> Held:
    held = Held("folder")
    held.put(rows, dict)
    return held


def taken_in(rows: list[dict[str, Any]], contents: list[str], known: set[int]) -> list[dict[str, Any]]:
    """What is new of a folder's episodes, in their order. known: places asked for first, as the ledger does."""
    held, new = holding(*rows), []
    for place in sorted(known & set(range(len(contents)))):
        held.find(place, contents[place])
    for place, content in enumerate(contents):
        entry = held.find(place, content)
        if entry is None:
            new.append(row(place, content))
            held.keep(new[-1])
        else:
            assert entry["content_hash"] == content
        assert held.find(place, content) == (entry or new[-1]), "the same again"
    return new


@given(st.lists(FOLDER, min_size=1, max_size=4), st.sets(st.integers(0, 7)))
def test_whatever_is_put_in_between_taken_away_or_renamed(folders: list[list[str]], known: set[int]) -> None:
    """A folder time and again, as it was each time: the data set has each content as often as the fullest had it."""
    rows: list[dict[str, Any]] = []
    for contents in folders:
        before = Counter(each["content_hash"] for each in rows)
        rows += taken_in(rows, contents, known)
        assert Counter(each["content_hash"] for each in rows) == before | Counter(contents)
        assert taken_in(rows, contents, known) == []


def test_the_number_comes_first() -> None:
    held = holding(row(0, "a"), row(1, "a", episode_index=7))
    assert held.find(1, "a") == row(1, "a", episode_index=7)
    assert held.find(2, "a") == row(0, "a")
    assert held.find(3, "a") is None


def test_another_source_s_is_known_by_its_number_alone() -> None:
    """The same folder under another name; two recordings of two sources are not one."""
    assert holding(row(0, "a", "elsewhere")).find(0, "a") is not None
    assert holding(row(0, "a", "elsewhere")).find(1, "a") is None


def test_an_edited_episode_is_known_by_what_it_came_in_as() -> None:
    held = holding(row(0, "new words", came_as="a"))
    assert held.find(1, "a") is not None
    assert held.find(2, "new words") is None, "it answers once"
