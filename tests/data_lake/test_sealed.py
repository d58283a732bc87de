"""Small files: no changed bit in one is believed, whatever it is of; those without a digest are still read."""

import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.curation import Choice
from data_lake.edits.tags import history, put_tag
from data_lake.given_up import give_up, given_up_path, word_of
from data_lake.saved_views import open_saved, save
from data_lake.sealed import numbered, of_kind, sealed, unsealed
from data_lake.store import read_record, revoke, slot_of
from errors import UserError
from tests.data_lake.test_store import SPEC, built

Read = Callable[[], Any]


def a_tag(root: Path) -> tuple[Path, Read]:
    put_tag(root, "best", 1, who="ada")
    return root / "tags/best/000001.json", lambda: history(root, "best")


def a_view(root: Path) -> tuple[Path, Read]:
    save(root, "long", Choice(where="length > 9"), who="ada", version=1, num_episodes=2)
    return root / "views/long/000001.json", lambda: open_saved(root, "long")


def a_word(root: Path) -> tuple[Path, Read]:
    give_up(root, 1, who="ada")
    return given_up_path(root, 1), lambda: word_of(given_up_path(root, 1))


def a_record(root: Path) -> tuple[Path, Read]:
    slot = slot_of(root, "pack", 1, SPEC, ())
    built(slot)
    return slot.path / "record.json", lambda: read_record(slot.path / "record.json")


def a_revocation(root: Path) -> tuple[Path, Read]:
    slot = slot_of(root, "pack", 1, SPEC, ())
    built(slot)
    revoke(slot, why="bad", who="ada")
    path = slot.path / "revoked.json"
    return path, lambda: unsealed(path, dict, remedy="write it again")


KINDS = [a_tag, a_view, a_word, a_record, a_revocation]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_changed_bit_is_named_or_changes_nothing(
    kind: Callable[[Path], tuple[Path, Read]], place: float, bit: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, read = kind(Path(folder))
        said = read()
        content = bytearray(path.read_bytes())
        content[int(place * len(content))] ^= 1 << bit
        path.write_bytes(content)
        try:
            found = read()
        except UserError as error:
            found = None
            told = (error.code in ("LAKE-080", "LAKE-242"), error.where, bool(error.next_step))
            assert told == (True, str(path), True)
        if isinstance(found, dict):  # where the name of the digest changed, it is one field more
            found = {name: found[name] for name in said}
        assert found in (None, said)


@pytest.mark.parametrize("kind", KINDS)
def test_files_without_a_digest_are_read(kind: Callable[[Path], tuple[Path, Read]], tmp_path: Path) -> None:
    path, read = kind(tmp_path)
    said = read()
    fields = json.loads(path.read_text())
    assert fields.pop("digest")
    path.write_text(json.dumps(fields))
    assert read() == said


@pytest.mark.parametrize("kind", KINDS[:4])
@pytest.mark.parametrize("content", ["[]", "3", '"x"', "null", "{}", '{"at": []}', '{"digest": 1}'])
def test_other_forms_are_named(kind: Callable[[Path], tuple[Path, Read]], content: str, tmp_path: Path) -> None:
    path, read = kind(tmp_path)
    path.write_text(content)
    with pytest.raises(UserError, match="LAKE-242"):
        read()


def test_fields_of_another_type_are_none_of_a_kind(tmp_path: Path) -> None:
    tag = put_tag(tmp_path, "best", 1, who="ada")
    assert of_kind(type(tag), asdict(tag)) == tag
    for fields in ({**asdict(tag), "version": "1"}, {**asdict(tag), "more": 1}, asdict(replace(tag, version=[]))):
        with pytest.raises(TypeError):
            of_kind(type(tag), fields)


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(sealed({"b": (1, 2), 10: "ä", 9: None}))
    assert unsealed(path, dict, remedy="") == {"b": [1, 2], "10": "ä", "9": None}


def test_only_files_of_ours_are_numbered(tmp_path: Path) -> None:
    for name in ("000010.json", "000002.json", "3copy.json", "2.json", "000003.json~", "٣.json", "1000000.json"):
        (tmp_path / name).touch()
    assert list(numbered(tmp_path)) == [2, 10, 1_000_000]
