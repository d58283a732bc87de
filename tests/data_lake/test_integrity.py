"""A changed byte of any file of a version is named, with its file and about where, before anybody reads it."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_lake import integrity
from data_lake.doctor import doctor
from data_lake.edits.compact import compact
from data_lake.edits.merge import merge
from data_lake.integrity import damage, digests, ensure_intact
from data_lake.published import publish_lance
from data_lake.tables import FOLDERS, manifest_path, open_table, read_manifest
from data_lake.version import open_version
from errors import UserError
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import LENGTHS, content, ingest


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of two versions; the second took over the files of the first."""
    lake = tmp_path_factory.mktemp("lake")
    for number, lengths in enumerate((LENGTHS, (8, 5))):
        ingest(write_v2(lake / f"source-{number}", lengths), lake / "datasets/cart")
    return lake


def turned(path: Path, place: int, bit: int = 0) -> bytes:
    """One bit of the file is turned; its content before."""
    before = path.read_bytes()
    changed = bytearray(before)
    changed[place] ^= 1 << bit
    path.write_bytes(changed)
    return before


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_byte_changes_unseen(recorded: Path, data: st.DataObject) -> None:
    """Doctor says so, and says nothing of files that no version needs."""
    root = recorded / "datasets/cart"
    paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
    path = data.draw(st.sampled_from(paths))
    place = data.draw(st.integers(0, path.stat().st_size - 1))
    good = content(root)
    before = turned(path, place, data.draw(st.integers(0, 7)))
    try:
        said = [found["code"] for found in doctor(str(root))["findings"] if found["severity"] == "error"]
        assert said or content(root) == good
    finally:
        path.write_bytes(before)
    assert content(root) == good


@pytest.mark.parametrize("table", ["frames", "videos", "meta"])
@pytest.mark.parametrize("folder", ["data/*.lance", "_versions/*.manifest"])
def test_the_file_and_the_bytes_are_named(
    recorded: Path, table: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integrity, "BLOCK", 64)
    monkeypatch.setattr(integrity, "_intact", {})
    root = recorded / "datasets/cart"
    manifest = read_manifest(root)
    assert manifest is not None
    held = digests(root, manifest.vector, {})
    name = sorted(name for name in held if Path(name).match(f"{table}.lance/{folder}"))[-1]
    before = turned(root / name, 70)
    try:
        assert list(damage(root, held, *FOLDERS)) == [(name, "bytes changed between 64 and 128")]
        with pytest.raises(UserError, match="bytes changed") as refused:
            ensure_intact(root, held, f"{table}.lance")
        assert refused.value.code == "LAKE-076" and refused.value.where == str(root / name)
        (root / name).write_bytes(before[:-65])
        ((_, cut),) = damage(root, held, *FOLDERS)
        (root / name).unlink()
        assert "blocks" in cut and list(damage(root, held, *FOLDERS)) == [(name, "the file is gone")]
    finally:
        (root / name).write_bytes(before)


def test_nothing_is_copied_from_damaged_rows(recorded: Path) -> None:
    version = open_version(recorded, "cart")
    name = next(name for name in version.manifest.files if name.startswith("frames.lance/data"))
    before = turned(version.root / name, 100)
    try:
        for copy in (
            lambda: publish_lance(version),
            lambda: compact(recorded, "cart", who="ada"),
            lambda: merge(recorded, ["cart"], "both", who="ada"),
        ):
            with pytest.raises(UserError, match="LAKE-076"):
                copy()
    finally:
        (version.root / name).write_bytes(before)
    assert open_version(recorded, "cart").manifest == version.manifest


def test_a_damaged_list_of_files_is_never_given_to_lance(recorded: Path) -> None:
    root = recorded / "datasets/cart"
    manifest = read_manifest(root)
    assert manifest is not None
    name = next(name for name in manifest.files if name.startswith("frames.lance/_versions"))
    before = turned(root / name, 10)
    try:
        with pytest.raises(UserError, match="LAKE-076"):
            open_table(root, manifest, "frames")
    finally:
        (root / name).write_bytes(before)


def test_a_version_hashes_only_what_it_adds(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = recorded / "datasets/cart"
    first, second = read_manifest(root, 1), read_manifest(root, 2)
    assert first is not None and second is not None
    read: list[str] = []
    monkeypatch.setattr(integrity, "digest_blocks", lambda path: read.append(path.relative_to(root).as_posix()) or [])
    assert digests(root, second.vector, first.files).keys() == second.files.keys()
    assert set(read) == second.files.keys() - first.files.keys()


def test_a_changed_manifest_is_no_manifest(recorded: Path) -> None:
    path = manifest_path(recorded / "datasets/cart", 2)
    before = path.read_bytes()
    path.write_text(json.dumps(json.loads(before) | {"num_frames": 1}))
    try:
        with pytest.raises(UserError, match="damaged") as refused:
            read_manifest(recorded / "datasets/cart")
        assert refused.value.code == "LAKE-074"
    finally:
        path.write_bytes(before)
