"""What earlier outputs hold is taken whole or not at all, linked, and vouched for only as a record did."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from upath import UPath

from data_lake import objects, vouched
from data_lake.earlier import Earlier, Output
from data_lake.files import sha256


@pytest.fixture
def outputs(tmp_path: Path) -> list[Output]:
    """The first is unfinished; both hold `a`."""
    for number, names in enumerate((("a", "sub/b"), ("a", "c"))):
        for name in names:
            path = tmp_path / str(number) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{name} of {number}")
    held = {name: sha256(tmp_path / "1" / name) for name in ("a", "c")}
    return [Output(folder=tmp_path / "0"), Output(folder=tmp_path / "1", digests=held)]


def test_the_first_output_that_has_a_file_gives_it(outputs: list[Output], tmp_path: Path) -> None:
    told: list[tuple[Path, str]] = []
    out = tmp_path / "out"
    earlier = Earlier(out, outputs, vouch=lambda path, digest: told.append((path, digest)))
    assert earlier.read("a") == b"a of 0"
    assert earlier.read("d") is None
    assert earlier.take(["sub/b", "c", "a"])
    assert [(out / name).read_text() for name in ("a", "sub/b", "c")] == ["a of 0", "sub/b of 0", "c of 1"]
    assert (out / "c").samefile(tmp_path / "1/c")
    assert told == [(out / "c", sha256(tmp_path / "1/c"))]


def test_all_or_nothing(outputs: list[Output], tmp_path: Path) -> None:
    """A name that nobody has, and a file that is gone although its record names it."""
    earlier = Earlier(tmp_path / "out", outputs)
    assert not earlier.take(["a", "d"])
    (tmp_path / "1/c").unlink()
    assert not earlier.take(["a", "c"])
    assert earlier.read("c") is None
    assert not (tmp_path / "out").exists()


def test_what_is_not_what_a_record_vouches_for_is_not_taken(outputs: list[Output], tmp_path: Path) -> None:
    told: list[tuple[Path, str]] = []
    earlier = Earlier(tmp_path / "out", outputs, vouch=lambda path, digest: told.append((path, digest)))
    assert earlier.read("c") == b"c of 1"
    (tmp_path / "1/c").write_text("C of 1")
    assert earlier.read("c") is None
    assert not earlier.take(["sub/b", "c"])
    assert not told and not (tmp_path / "out").exists()


def test_a_finished_slot_gives_the_folder_of_its_ref(bucket: UPath, tmp_path: Path) -> None:
    files = {"attempts/2/card.json": {"size": 1, "sha256": "S"}}
    record = {
        "stage": "preprocess",
        "fingerprint": "f",
        "ref": {"uri": "preprocess/f/attempts/2"},
        "files": files,
    }
    here = Output.of_record(tmp_path, tmp_path, record)
    assert here == Output(folder=tmp_path / "preprocess/f/attempts/2", digests={"card.json": "S"}) and not here.sizes
    there = Output.of_record(bucket, tmp_path, record)
    assert there == replace(here, stored=bucket / "preprocess/f/attempts/2")


def test_what_only_the_store_has_is_copied_there_and_fetched_if_it_is_read(bucket: UPath, tmp_path: Path) -> None:
    """`c` is here, too, and is linked; `b` is not read. What a record names and the store lost is not taken."""
    stored = bucket / "old"
    for name in ("a", "sub/b", "c"):
        objects.put(stored / name, name.encode())
    (tmp_path / "here").mkdir()
    (tmp_path / "here/c").write_bytes(b"c")
    copied: list[tuple[Path, UPath, int, str]] = []
    digests = {name: name.upper() for name in ("a", "sub/b", "lost")} | {"c": sha256(tmp_path / "here/c")}
    out = tmp_path / "out"
    output = Output(folder=tmp_path / "here", digests=digests, stored=stored)
    earlier = Earlier(out, [output], copy=lambda *told: copied.append(told))
    assert earlier.read("a") == b"a" and earlier.read("lost") is None
    assert not earlier.take(["a", "lost"]) and not copied
    assert earlier.take(["sub/b", "c", "a"], unread=["sub/b"])
    assert copied == [(out / name, stored / name, len(name), digests[name]) for name in ("sub/b", "c", "a")]
    assert sorted(path.name for path in out.rglob("*") if path.is_file()) == ["a", "c"]
    assert (out / "a").read_bytes() == b"a" and (out / "c").samefile(tmp_path / "here/c")


def test_what_is_large_is_taken_on_the_word_of_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As whoever builds on the slot takes it; what is no data of a table is looked at all the same."""
    monkeypatch.setattr(vouched, "SMALL_SLOT", 0)
    files = {"out/a.lance/data/0.lance": b"rows", "out/card.json": b"{}"}
    told = {name: {"size": len(each), "sha256": hashlib.sha256(each).hexdigest()} for name, each in files.items()}
    record = {"stage": "made", "fingerprint": "f", "ref": {"uri": "made/f/out"}, "files": told}
    for name in files:
        path = tmp_path / "made/f" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"else")
    (tmp_path / "new").mkdir()
    vouched_for: dict[str, str] = {}
    output = Output.of_record(tmp_path, tmp_path, record)
    earlier = Earlier(tmp_path / "new", [output], lambda path, digest: vouched_for.update({path.name: digest}))
    assert earlier.take(["a.lance/data/0.lance"]) and not earlier.take(["card.json"])
    assert vouched_for == {"0.lance": told["out/a.lance/data/0.lance"]["sha256"]}, "so that its damage can be found"
