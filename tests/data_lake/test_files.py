"""Files appear whole or not at all, and only one of many writers creates a name."""

import errno
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from data_lake import files
from data_lake.files import TEMPORARY, appearing, link_or_copy, put_if_absent, replace, sha256, tree


def test_only_the_first_put_counts(tmp_path: Path) -> None:
    assert put_if_absent(tmp_path / "a", b"one")
    assert not put_if_absent(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"one"


def test_one_of_many_writers_wins_and_nothing_is_left_behind(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda i: put_if_absent(tmp_path / "a", str(i).encode()), range(32)))
    assert won.count(True) == 1
    assert (tmp_path / "a").read_bytes() == str(won.index(True)).encode()
    assert not list(tmp_path.glob(f"{TEMPORARY}*"))


def test_replace_swaps_the_content(tmp_path: Path) -> None:
    replace(tmp_path / "a", b"one")
    replace(tmp_path / "a", b"two")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"two"


def test_sha256_and_order_of_the_tree(tmp_path: Path) -> None:
    for name in ("b/x", "a/y", "c"):
        replace(tmp_path / name, name.encode())
    assert [path.relative_to(tmp_path).as_posix() for path in tree(tmp_path)] == ["a/y", "b/x", "c"]
    assert sha256(tmp_path / "c", durable=True) == hashlib.sha256(b"c").hexdigest()


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "deep/folder"
    with appearing(target) as folder:
        (folder / "a").mkdir()
        (folder / "a/b").write_text("b")
        assert not target.exists()
    assert (target / "a/b").read_text() == "b" and list(target.parent.iterdir()) == [target]


def test_a_folder_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), appearing(tmp_path / "folder") as folder:
        (folder / "a").write_text("a")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_of_two_that_make_a_folder_the_first_stays(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    with pytest.raises(FileExistsError), appearing(target) as late:
        (late / "a").write_text("late")
        with appearing(target) as early:
            (early / "a").write_text("early")
    assert (target / "a").read_text() == "early" and list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP])
def test_where_no_link_can_be_a_copy_is_made(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("a")
    link_or_copy(tmp_path / "a", tmp_path / "linked/a")
    assert (tmp_path / "linked/a").stat().st_ino == (tmp_path / "a").stat().st_ino

    def refuse(_source: Path, _target: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "link", refuse)
    link_or_copy(tmp_path / "a", tmp_path / "copied/a")
    assert (tmp_path / "copied/a").read_text() == "a"
    assert (tmp_path / "copied/a").stat().st_ino != (tmp_path / "a").stat().st_ino


def test_a_full_disk_is_told_not_worked_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_source: Path, _target: Path) -> None:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(files.os, "link", refuse)
    with pytest.raises(OSError, match="no space"):
        link_or_copy(tmp_path / "a", tmp_path / "copied/a")
