"""A source on an object store is the same source as the folder; only what changed there is fetched again."""

from dataclasses import replace as changed
from pathlib import Path

import pytest
from upath import UPath

from data_lake import objects
from data_lake.files import replace
from data_lake.sources.remote import source_folder
from data_lake.sources.snapshot import snapshot
from errors import UserError
from tests.data_lake.recordings import write_v2


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Names of the files that each look fetched."""
    seen: list[list[str]] = []
    download = objects.download

    def watch(root: UPath, sizes: dict[str, int], target: Path) -> None:
        seen.append(list(sizes))
        download(root, sizes, target)

    monkeypatch.setattr(objects, "download", watch)
    return seen


def test_a_folder_is_read_where_it_is(tmp_path: Path) -> None:
    assert source_folder(str(tmp_path), tmp_path / "home") == tmp_path


def test_the_same_files_are_the_same_source(bucket: UPath, tmp_path: Path) -> None:
    recorded = write_v2(tmp_path / "demos")
    objects.upload(recorded, bucket / "demos", lambda: None)
    said: list[str] = []
    folder = source_folder(f"{bucket}/demos/", tmp_path / "home", said.append)
    here, there = (snapshot(path, tmp_path / "cache") for path in (recorded, folder))
    assert changed(there, path=here.path) == here and here.uri == "demos"
    assert len(said) == 1 and f"{here.num_files} files, {here.num_bytes:,} bytes" in said[0]


def test_only_what_changed_is_fetched_again(bucket: UPath, tmp_path: Path, fetched: list[list[str]]) -> None:
    root, home = bucket / "demos", tmp_path / "home"
    for name in ("a", "deep/b", "c"):
        replace(root / name, b"one")
    folder = source_folder(str(root), home)
    replace(root / "a", b"two")  # as long as before
    (root / "c").unlink()
    replace(root / "d", b"new")
    (folder / "deep/b").unlink()
    assert source_folder(str(root), home) == folder == source_folder(str(root), home)
    assert fetched == [["a", "c", "deep/b"], ["a", "d", "deep/b"], []]
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert files == {"a": b"two", "d": b"new", "deep/b": b"one"}


def test_a_fetch_that_was_cut_is_repeated(bucket: UPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the note says is here was whole before the note said so."""
    root, home = bucket / "demos", tmp_path / "home"
    replace(root / "a", b"one")
    folder = source_folder(str(root), home)
    replace(root / "a", b"two")

    def cut(_root: UPath, _sizes: dict[str, int], target: Path) -> None:
        (target / "a").write_bytes(b"t")
        raise ConnectionError

    with monkeypatch.context() as patch, pytest.raises(ConnectionError):
        patch.setattr(objects, "download", cut)
        source_folder(str(root), home)
    replace(root / "a", b"one")  # the ETag that was known before the cut
    assert (source_folder(str(root), home) / "a").read_bytes() == b"one" and folder.is_dir()


def test_two_sources_do_not_mix(bucket: UPath, tmp_path: Path) -> None:
    for name in ("a", "a/b", "b"):
        replace(bucket / name / "file", name.encode())
    folders = [source_folder(f"{bucket}/{name}", tmp_path) for name in ("a/b", "b")]
    assert [(folder / "file").read_bytes() for folder in folders] == [b"a/b", b"b"]


def test_nothing_there_is_said(bucket: UPath, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="(?s)LAKE-002.*never"):
        source_folder(f"{bucket}/never", tmp_path)
    with pytest.raises(UserError, match="LAKE-172"):
        source_folder("s3://absent-bucket/demos", tmp_path)
