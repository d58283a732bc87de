"""Keys of parts: what they depend on, and that nothing is known of what has no digest."""

import os
from pathlib import Path

import pytest

from data_lake.ledger import Ledger, Verdict
from data_lake.sources.lerobot import LeRobotFolder
from data_lake.sources.snapshot import digests
from data_lake.tally import Sums
from tests.data_lake.recordings import write_v2


def verdict(part: int, content_hash: str = "a") -> Verdict:
    return Verdict(
        part=part,
        source_episode=part,
        file=None,
        content_hash=content_hash,
        recording=content_hash,
        digests={},
        findings=(),
    )


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "cart").mkdir()
    return write_v2(tmp_path / "source", (5, 6, 7))


def open_ledger(source: Path, read_as: str = "as it says") -> Ledger:
    """Asked once, as before anything is read."""
    root = source.parent
    ledger = Ledger(root / "cart/examined", LeRobotFolder(source), read_as, digests(source, root / "snapshots"))
    assert not list(ledger.known(lambda _: False))
    return ledger


def known(ledger: Ledger) -> list[int]:
    return [place for run in ledger.known(lambda _: True) for place in run.left_out]


def test_runs_are_found_where_their_parts_are(source: Path) -> None:
    ledger = open_ledger(source)
    assert known(ledger) == []
    ledger.put([verdict(1), verdict(2, "")], Sums(lengths={1: 6}))
    (run,) = open_ledger(source).known(lambda _: True)
    assert (run.first, run.left_out, run.sums.lengths) == (1, {1: 1, 2: 1}, {1: 6})
    assert run.verdicts == (verdict(1), verdict(2, ""))
    assert list(ledger.known(lambda each: each.content_hash == "b")) == [], "its rows are needed"
    assert known(open_ledger(source, "otherwise")) == []


def test_a_source_elsewhere_is_the_same(source: Path, tmp_path: Path) -> None:
    open_ledger(source).put([verdict(0)], Sums())
    moved = source.rename(tmp_path / "moved")
    assert known(open_ledger(moved)) == [0]


def test_a_file_without_a_digest_is_never_known(source: Path) -> None:
    seen = digests(source, source.parent / "snapshots")
    del seen[source / "data/chunk-000/episode_000001.parquet"]
    ledger = Ledger(source.parent / "cart/examined", LeRobotFolder(source), "as it says", seen)
    assert known(ledger) == []
    for part in range(3):
        ledger.put([verdict(part)], Sums())
    assert known(ledger) == [0, 2]


@pytest.mark.parametrize("torn", [b"", b"PK\x03\x04", b"not an archive"])
def test_a_torn_file_is_as_if_it_were_not_there(torn: bytes, source: Path, tmp_path: Path) -> None:
    open_ledger(source).put([verdict(0)], Sums())
    (path,) = (tmp_path / "cart/examined").iterdir()
    path.write_bytes(torn)
    assert known(open_ledger(source)) == []


def test_a_data_set_that_is_not_there_is_not_made(source: Path, tmp_path: Path) -> None:
    (tmp_path / "cart").rmdir()
    ledger = open_ledger(source)
    ledger.put([verdict(0)], Sums())
    assert not (tmp_path / "cart").exists()
    (tmp_path / "cart").mkdir()
    ledger.close()
    assert known(ledger) == [0]


@pytest.mark.parametrize("change", ["rows", "gone", "mtime set back"])
def test_a_file_that_changed_while_it_was_read_is_not_kept(change: str, source: Path) -> None:
    """Its digest was taken before, what was seen may be of other bytes."""
    ledger, path = open_ledger(source), source / "data/chunk-000/episode_000001.parquet"
    stat = path.stat()
    if change == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[: -1 if change == "rows" else None])
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    for part in range(3):
        ledger.put([verdict(part)], Sums())
    assert known(ledger) == [0, 2]
