"""Doctor on what lies beside the tables: damaged small files are errors, stray ones notes, and nothing else trips."""

from pathlib import Path

import pytest

from data_lake.beside import beside_findings
from data_lake.curation import Choice
from data_lake.doctor import doctor
from data_lake.edits.tags import put_tag
from data_lake.gc import find_garbage
from data_lake.given_up import give_up, given_up_path
from data_lake.saved_views import save
from data_lake.tables import read_manifest, versions
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import ingest
from tests.data_lake.test_writer import append


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "datasets/cart"
    for _ in range(3):
        assert append(root, 5) is not None
    put_tag(root, "best", 2, who="ada")
    save(root, "long", Choice(where="length > 9"), who="ada", version=1, num_episodes=2)
    give_up(root, 1, who="ada")
    return root


def found(root: Path) -> set[tuple[str, str]]:
    return {(each.code, Path(each.file or "").name) for each in beside_findings(root)}


def test_doctor_tells_of_them(tmp_path: Path) -> None:
    root = tmp_path / "cart"
    ingest(write_v2(tmp_path / "source", (5,)), root)
    assert doctor(str(root))["findings"] == []
    (root / "manifests/3copy.json").touch()
    (told,) = doctor(str(root))["findings"]
    assert (told["code"], told["severity"], told["file"]) == ("LAKE-243", "note", "manifests/3copy.json")


def test_nothing_is_wrong(root: Path) -> None:
    assert found(root) == set()


@pytest.mark.parametrize("name", ["tags/best/000001.json", "views/long/000001.json", "given-up/000001.json"])
def test_a_changed_one_is_an_error(root: Path, name: str) -> None:
    path = root / name
    path.write_text(path.read_text().replace("ada", "bob"))
    assert found(root) == {("LAKE-242", "000001.json")}


@pytest.mark.parametrize("folder", ["manifests", "given-up", "tags/best", "views/long"])
def test_stray_names_are_noted_and_trip_nobody(root: Path, folder: str) -> None:
    for name in ("3copy.json", "1.json"):
        (root / folder / name).write_text("{}")
    assert found(root) == {("LAKE-243", "3copy.json"), ("LAKE-243", "1.json")}
    assert versions(root) == [2, 3] and read_manifest(root) is not None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 1, "by": "ada", "at": "yesterday"}'])
def test_a_word_that_does_not_hold_still_counts_and_gc_goes_on(root: Path, content: str) -> None:
    given_up_path(root, 1).write_text(content)
    assert versions(root) == [2, 3]
    lake = root.parents[1]
    assert all("given-up" not in str(each.path) for each in find_garbage(lake, grace_s=3600))
