"""The digest of a source: by content and relative name, cached, and checked before reading."""

import os
from pathlib import Path

import pytest
from blake3 import blake3

from data_lake.sources import snapshot as module
from data_lake.sources.snapshot import digests, ensure_covered, snapshot, verify
from errors import UserError


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "meta").mkdir(parents=True)
    (folder / "meta/info.json").write_text("{}")
    (folder / "a.parquet").write_bytes(b"rows")
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_a_snapshot_is_its_files(source: Path, cache: Path, tmp_path: Path) -> None:
    first = snapshot(source, cache)
    assert (first.num_files, first.num_bytes, first.path) == (2, 6, str(source))
    moved = tmp_path / "elsewhere"
    source.rename(moved)
    assert snapshot(moved, cache).fingerprint == first.fingerprint


@pytest.mark.parametrize("change", ["content", "name", "added", "removed"])
def test_what_changes_it(change: str, source: Path, cache: Path) -> None:
    first = snapshot(source, cache)
    file = source / "a.parquet"
    if change == "content":
        file.write_bytes(b"rowz")
        os.utime(file, ns=(1, 1))
    elif change == "name":
        file.rename(source / "b.parquet")
    elif change == "added":
        (source / "b.parquet").write_bytes(b"")
    else:
        file.unlink()
    assert snapshot(source, cache).fingerprint != first.fingerprint
    with pytest.raises(UserError) as error:
        verify(first, cache)
    assert error.value.code == "LAKE-003" and "new run" in error.value.next_step


def test_what_does_not(source: Path, cache: Path) -> None:
    first = snapshot(source, cache)
    os.utime(source / "a.parquet", ns=(1, 1))
    (source / ".DS_Store").write_text("x")
    (source / ".git").mkdir()
    (source / ".git/config").write_text("x")
    (source / "__pycache__").mkdir()
    (source / "__pycache__/x.pyc").write_text("x")
    assert snapshot(source, cache) == first
    contents = {"a.parquet": b"rows", "meta/info.json": b"{}"}
    assert verify(first, cache) == {source / name: blake3(content).hexdigest() for name, content in contents.items()}


@pytest.mark.parametrize("place", ["data", ".data", "meta/.rows", "data/deep"])
@pytest.mark.parametrize("kind", ["folder", "linked folder", "linked file"])
def test_wherever_a_file_lies_a_change_is_seen(
    kind: str, place: str, source: Path, cache: Path, tmp_path: Path
) -> None:
    """What can be opened by a path below the source counts, by that path."""
    file, big = source / place / "b.parquet", tmp_path / "big"
    big.mkdir()
    (big / "b.parquet").write_bytes(b"more")
    file.parent.parent.mkdir(exist_ok=True)
    if kind == "linked folder":
        file.parent.symlink_to(big)
    else:
        file.parent.mkdir()
        if kind == "linked file":
            file.symlink_to(big / "b.parquet")
        else:
            file.write_bytes(b"more")
    first = snapshot(source, cache)
    assert digests(source, cache)[file] == blake3(b"more").hexdigest() and first.num_files == 3
    file.resolve().write_bytes(b"others")
    assert snapshot(source, cache).fingerprint != first.fingerprint
    with pytest.raises(UserError, match="LAKE-003"):
        verify(first, cache)


def test_a_link_that_leads_elsewhere_now_is_seen(source: Path, cache: Path) -> None:
    for name in ("one", "two"):
        (source / name).mkdir()
        (source / name / "b.parquet").write_bytes(name.encode())
    (source / "data").symlink_to("one")
    first = snapshot(source, cache)
    (source / "data").unlink()
    (source / "data").symlink_to("two")
    assert snapshot(source, cache).fingerprint != first.fingerprint


@pytest.mark.parametrize("target", [".", "..", "../..", "/", "../../outside"])
def test_links_that_go_in_circles_are_refused(target: str, source: Path, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/back").symlink_to(source)
    (source / "meta/loop").symlink_to(target)
    with pytest.raises(UserError, match="(?s)LAKE-240.*(loop|back)"):
        snapshot(source, cache)


def test_files_that_no_snapshot_held(source: Path) -> None:
    held = {source / "a.parquet": "0"}
    ensure_covered([source / "a.parquet", source / "gone.parquet"], held)
    with pytest.raises(UserError, match="(?s)LAKE-241.*info.json"):
        ensure_covered([source / "a.parquet", source / "meta/info.json"], held)
    ensure_covered([source / "meta/info.json"], {})


def test_files_are_hashed_once(source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    monkeypatch.setattr(module, "content_digest", lambda path: hashed.append(path.name) or "0" * 64)
    for _ in range(2):
        snapshot(source, cache)
    assert sorted(hashed) == ["a.parquet", "info.json"]
    os.utime(source / "a.parquet", ns=(1, 1))
    snapshot(source, cache)
    assert hashed.count("a.parquet") == 2


def test_a_torn_cache_is_not_believed(source: Path, cache: Path) -> None:
    first = snapshot(source, cache)
    for content in ("{", "[]", '{"a.parquet": 3}'):
        next(cache.iterdir()).write_text(content)
        assert snapshot(source, cache) == first


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_nothing_there(name: str, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError) as error:
        snapshot(tmp_path / name, cache)
    assert error.value.code == "LAKE-002"


def test_what_size_and_time_hide_is_seen_by_hashing_again(source: Path, cache: Path) -> None:
    first = snapshot(source, cache)
    file = source / "a.parquet"
    time = file.stat().st_mtime_ns
    file.write_bytes(b"wors")
    os.utime(file, ns=(time, time))
    assert snapshot(source, cache).fingerprint == first.fingerprint
    assert snapshot(source, cache, rehash=True).fingerprint != first.fingerprint
    assert snapshot(source, cache).fingerprint != first.fingerprint


def test_digests_of_a_folder_and_of_a_file(source: Path, cache: Path) -> None:
    found = digests(source, cache)
    assert found.keys() == {source / "a.parquet", source / "meta/info.json"}
    assert digests(source / "a.parquet", cache) == {source / "a.parquet": found[source / "a.parquet"]}
    assert found[source / "a.parquet"] == blake3(b"rows").hexdigest()
