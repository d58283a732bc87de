"""A killed ingest continues: what it had on disk is taken up, whatever note it died at, and by no other ingest."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_lake import journal
from data_lake.doctor import doctor
from data_lake.files import tree
from data_lake.journal import FOLDER
from data_lake.orphans import orphans
from data_lake.shelf import Shelves
from data_lake.tables import versions
from data_lake.writer import FRAGMENT_BYTES
from tests.data_lake.recordings import CAMERA, change_rows, write_v2
from tests.data_lake.seen import content, ingest

LENGTHS = (8, 12, 10, 9, 11, 7, 6, 5)
CAMERAS = (CAMERA, "observation.images.wrist")
STEPS = range(1, 9)  # before and after each of four notes; later ones depend on the disk
VIDEOS = len(LENGTHS) * len(CAMERAS)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_v2(tmp_path_factory.mktemp("made") / "source", LENGTHS, CAMERAS)


def killed(
    source: Path, folder: Path, steps: range, rows_bytes: int = FRAGMENT_BYTES, root: Path | None = None
) -> list[Path]:
    """Data sets of which the first ingest (of `root`, one more) was killed, one at each of `steps`."""
    roots = [root or folder / f"cart{step}" for step in steps]
    jobs = [f"{root}:{step}" for root, step in zip(roots, steps, strict=True)]
    command = [sys.executable, "-m", "tests.data_lake.killed_ingest", str(source), str(rows_bytes), *jobs]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["killed"] * len(steps)
    return roots


@pytest.fixture(scope="module")
def killed_once(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Right after the third note, of three episodes at least."""
    return killed(source, tmp_path_factory.mktemp("killed"), range(6, 7))[0]


@pytest.fixture
def root(killed_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(killed_once, tmp_path / "cart"))


@pytest.fixture
def puts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Videos that are written, as they are."""
    seen: list[str] = []
    put = Shelves.put

    def noted(self: Shelves, video: Any, row: Any) -> None:
        seen.append(row["blake3"])
        put(self, video, row)

    monkeypatch.setattr(Shelves, "put", noted)
    return seen


@pytest.mark.parametrize("rows_bytes", [1500, FRAGMENT_BYTES])
def test_killed_at_any_note_it_continues(rows_bytes: int, source: Path, puts: list[str], tmp_path: Path) -> None:
    """rows_bytes: rows are partly in fragments, partly in notes; or all in notes."""
    ingest(source, tmp_path / "undisturbed")
    expected, whole = content(tmp_path / "undisturbed"), len(puts)
    taken = []
    for root in killed(source, tmp_path, STEPS, rows_bytes):
        assert not versions(root)
        puts.clear()
        ingest(source, root)
        assert content(root) == expected and versions(root) == [1]
        assert not list((root / FOLDER).glob("*"))
        taken.append(whole - len(puts))
    assert taken[0] == 0
    assert all(some >= 2 * (step // 2) for step, some in zip(STEPS, taken, strict=True)), "two of each noted episode"


def test_it_continues_onto_a_data_set_that_has_more(source: Path, puts: list[str], tmp_path: Path) -> None:
    other = write_v2(tmp_path / "other", (5, 6), CAMERAS)
    ingest(other, tmp_path / "undisturbed")
    shutil.copytree(tmp_path / "undisturbed", tmp_path / "cart4")
    ingest(source, tmp_path / "undisturbed")
    (root,) = killed(source, tmp_path, range(4, 5))
    puts.clear()
    ingest(source, root)
    assert content(root) == content(tmp_path / "undisturbed") and len(puts) <= VIDEOS - 4


def sweep(root: Path) -> None:
    for path in orphans(root, older_than_s=0):
        os.unlink(path)


def test_what_can_be_taken_up_is_no_garbage(source: Path, root: Path, puts: list[str]) -> None:
    sweep(root)
    ingest(source, root)
    assert len(puts) <= VIDEOS - 6
    sweep(root)
    assert content(root)["counts"] == (8, 68, VIDEOS) and orphans(root, older_than_s=0) == []


@pytest.mark.parametrize("why", ["late", "outrun"])
def test_what_cannot_any_more_is(
    why: str, source: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a week, or once the data set has moved on."""
    named = {path for path in tree(root) if path.suffix in (".arrow", ".lance", ".blob")}
    if why == "late":
        monkeypatch.setattr(journal, "KEPT_S", -1.0)
    else:
        ingest(write_v2(tmp_path / "other", (5, 6), CAMERAS), root)
    assert named <= set(orphans(root, older_than_s=0))
    sweep(root)
    assert ingest(source, root).num_new == 8


@pytest.mark.parametrize("change", ["file", "label", "gone"])
def test_another_ingest_takes_nothing_up(
    change: str, source: Path, root: Path, puts: list[str], tmp_path: Path
) -> None:
    changed = Path(shutil.copytree(source, tmp_path / "source"))
    if change == "file":
        change_rows(changed / "data/chunk-000/episode_000004.parquet", action=[[0.5, 1.0]] * 11)
    if change == "gone":
        shutil.rmtree(root / "videos.lance/data")
    ingest(changed, root, label="another" if change == "label" else "")
    assert len(puts) == VIDEOS
    ingest(changed, tmp_path / "undisturbed")
    assert content(root) == content(tmp_path / "undisturbed")


def test_a_torn_note_and_those_behind_it_are_not_there(
    source: Path, root: Path, puts: list[str], tmp_path: Path
) -> None:
    first, second, *_ = sorted((root / FOLDER).glob("*/*.arrow"))
    second.write_bytes(first.read_bytes()[:100])
    ingest(source, root)
    ingest(source, tmp_path / "undisturbed", digests={})
    assert content(root) == content(tmp_path / "undisturbed") and VIDEOS < len(puts) < 2 * VIDEOS


def flip(path: Path, place: float, bit: int) -> None:
    """One bit of a file, at `place` of its length."""
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1 << bit
    path.write_bytes(content)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, Any]]:
    """A source, the data set that a killed ingest of it left after three notes, with rows in fragments and in notes,
    inline videos and one beside, and what an undisturbed one gives."""
    folder = tmp_path_factory.mktemp("left")
    source = write_v2(folder / "source", LENGTHS[:5])
    for name in ("episode_000000.mp4", "episode_000001.mp4"):  # a box that players pass over
        with (source / f"videos/chunk-000/{CAMERA}" / name).open("ab") as file:
            file.write((1 << 17).to_bytes(4, "big") + b"free" + bytes((1 << 17) - 8))
    root = killed(source, folder, range(6, 7), 1500)[0]
    ingest(source, folder / "undisturbed")
    return source, root, content(folder / "undisturbed")


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_whatever_bit_changes_the_outcome_is_that_of_an_undisturbed_ingest(
    data: st.DataObject, place: float, bit: int, left: tuple[Path, Path, dict[str, Any]], tmp_path: Path
) -> None:
    source, root, expected = left
    names = [path.relative_to(root) for path in tree(root) if path.suffix in (".arrow", ".lance", ".blob")]
    assert {path.suffix for path in names} == {".arrow", ".lance", ".blob"}
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        again = Path(shutil.copytree(root, Path(folder) / "cart"))
        flip(again / data.draw(st.sampled_from(names)), place, bit)
        ingest(source, again)
        assert content(again) == expected and not list((again / FOLDER).glob("*"))
        assert doctor(str(again))["findings"] == []


def test_what_is_made_anew_is_noted_anew(source: Path, root: Path, puts: list[str], tmp_path: Path) -> None:
    """Killed again after a note that did not hold, it goes on from behind it."""
    second = sorted((root / FOLDER).glob("*/*.arrow"))[1]
    flip(second, 0.5, 0)
    again = killed(source, tmp_path, range(4, 5), root=root)[0]
    assert len(list((again / FOLDER).glob("*/*.arrow"))) >= 3
    ingest(source, again)
    assert len(puts) <= VIDEOS - 6


def test_what_changes_after_it_was_taken_up_is_not_vouched_for(source: Path, root: Path) -> None:
    def damaging(number: int, _total: int, _figures: Any) -> None:
        if number == 3:
            for path in (root / "videos.lance/data").glob("*.lance"):
                flip(path, 0.2, 0)

    ingest(source, root, on_progress=damaging)
    assert "LAKE-076" in {each["code"] for each in doctor(str(root))["findings"]}


def test_notes_of_two_attempts_are_never_read_as_one(source: Path, root: Path, puts: list[str], tmp_path: Path) -> None:
    """Both began with nothing; the second note of the other follows its own first one only."""
    (other,) = killed(source, tmp_path, range(8, 9))
    (mine,), (theirs,) = (list((each / FOLDER).iterdir()) for each in (root, other))
    shutil.copy(theirs / "000002.arrow", mine / "000002.arrow")
    shutil.copytree(other / "videos.lance", root / "videos.lance", dirs_exist_ok=True)
    ingest(source, root)
    ingest(source, tmp_path / "undisturbed", digests={})
    assert content(root) == content(tmp_path / "undisturbed") and VIDEOS < len(puts) < 2 * VIDEOS
