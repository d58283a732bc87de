"""Files appear whole or not at all, and only one of many writers creates a name."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from data_lake.files import TEMPORARY, put_if_absent, replace, sha256, tree


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
