"""What earlier outputs hold is taken whole or not at all, linked, and vouched for only as a record did."""

from pathlib import Path

import pytest

from data_lake.earlier import Earlier, Output


@pytest.fixture
def outputs(tmp_path: Path) -> list[Output]:
    """The first is unfinished; both hold `a`."""
    for number, names in enumerate((("a", "sub/b"), ("a", "c"))):
        for name in names:
            path = tmp_path / str(number) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{name} of {number}")
    return [Output(folder=tmp_path / "0"), Output(folder=tmp_path / "1", digests={"a": "A", "c": "C"})]


def test_the_first_output_that_has_a_file_gives_it(outputs: list[Output], tmp_path: Path) -> None:
    told: list[tuple[Path, str]] = []
    out = tmp_path / "out"
    earlier = Earlier(out, outputs, vouch=lambda path, digest: told.append((path, digest)))
    assert earlier.read("a") == b"a of 0"
    assert earlier.read("d") is None
    assert earlier.take(["sub/b", "c", "a"])
    assert [(out / name).read_text() for name in ("a", "sub/b", "c")] == ["a of 0", "sub/b of 0", "c of 1"]
    assert (out / "c").samefile(tmp_path / "1/c")
    assert told == [(out / "c", "C")]


def test_all_or_nothing(outputs: list[Output], tmp_path: Path) -> None:
    """A name that nobody has, and a file that is gone although its record names it."""
    earlier = Earlier(tmp_path / "out", outputs)
    assert not earlier.take(["a", "d"])
    (tmp_path / "1/c").unlink()
    assert not earlier.take(["a", "c"])
    assert earlier.read("c") is None
    assert not (tmp_path / "out").exists()


def test_a_finished_slot_gives_the_folder_of_its_ref(tmp_path: Path) -> None:
    slot = tmp_path / "lake/preprocess/f"
    files = {"attempts/2/card.json": {"size": 1, "sha256": "S"}}
    output = Output.of_record(slot, {"ref": {"uri": "preprocess/f/attempts/2"}, "files": files})
    assert output == Output(folder=slot / "attempts/2", digests={"card.json": "S"})
