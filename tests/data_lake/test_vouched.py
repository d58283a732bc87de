"""What a stage takes up is there, and what is small of it, or in a small slot, is what was made."""

import os
import shutil
from pathlib import Path

import pytest
from upath import UPath

from data_lake import vouched
from data_lake.files import replace, tree
from data_lake.gc import find_garbage
from data_lake.objects import put
from data_lake.refs import DatasetRef, PackedRef
from data_lake.store import Slot, begin, slot_of
from data_lake.vouched import content_sha256, require_files
from errors import UserError
from tests.data_lake.test_store import SPEC, built


@pytest.mark.parametrize("harm", ["gone", "short", "folder"])
def test_what_is_built_upon_must_be_there(tmp_path: Path, harm: str) -> None:
    slot = slot_of(tmp_path, "pack", 1, SPEC, ())
    built(slot)
    ref = slot.ref()
    assert ref is not None
    require_files(tmp_path, [ref])
    if harm == "folder":
        shutil.rmtree(slot.path / "attempts")
    elif harm == "short":
        (slot.path / "attempts/1/file").write_text("b")
    else:
        (slot.path / "attempts/1/file").unlink()
    with pytest.raises(UserError, match="(?s)LAKE-081.*pack/.*attempts/1/file.*--rebuild pack"):
        require_files(tmp_path, [ref])
    assert find_garbage(tmp_path, grace_s=0) == []


def test_tables_of_a_data_set_must_be_there(tmp_path: Path) -> None:
    counts = dict.fromkeys(("num_episodes", "num_quarantined", "num_frames", "num_findings"), 1)
    ref = DatasetRef(uri="ingest/f/attempts/1", fingerprint="f", dataset="cart", version=1, **counts)
    (tmp_path / ref.uri).mkdir(parents=True)
    with pytest.raises(UserError, match="(?s)LAKE-081.*datasets/cart.*--rebuild ingest"):
        require_files(tmp_path, [ref])


NAMES = ("card.json", "samples.lance/data/0.lance", "samples.lance/_versions/1.manifest", "weights")


def made(lake: Path, size: int = 100) -> tuple[Slot, PackedRef]:
    """A slot with a table, each of whose files has `size` bytes."""
    slot = slot_of(lake, "pack", 1, SPEC, ())
    attempt = begin(slot, run_id="r", lease_s=5.0, on_wait=lambda held: None)
    assert attempt is not None
    for name in NAMES:
        replace(attempt.path / name, os.urandom(size))
    ref = PackedRef(
        uri=attempt.uri, fingerprint=slot.fingerprint, num_samples=1, num_rows=1, tokens_per_row=1, fill_rate=1.0
    )
    attempt.commit(ref, {"provenance": {"finished": "0"}})
    return slot, ref


def harm(path: Path) -> None:
    """Another bit, of the same size and time."""
    stat = path.stat()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize("name", NAMES)
def test_any_changed_bit_of_a_small_slot_is_named(name: str, tmp_path: Path) -> None:
    slot, ref = made(tmp_path)
    require_files(tmp_path, [ref])
    harm(slot.path / "attempts/1" / name)
    with pytest.raises(UserError, match=f"(?s)LAKE-244.*attempts/1/{name}.*--rebuild pack"):
        require_files(tmp_path, [ref])


def test_of_a_large_slot_all_is_read_but_large_files_and_data_of_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vouched, "SMALL_SLOT", 399)
    slot, ref = made(tmp_path)
    harm(slot.path / "attempts/1/samples.lance/data/0.lance")
    require_files(tmp_path, [ref])
    monkeypatch.setattr(vouched, "SMALL_FILE", 99)
    for path in tree(slot.path / "attempts"):
        harm(path)
    require_files(tmp_path, [ref])
    monkeypatch.setattr(vouched, "SMALL_FILE", 100)
    with pytest.raises(UserError, match="LAKE-244: files are not what pack made: 3"):
        require_files(tmp_path, [ref])


def test_a_file_is_read_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slot, ref = made(tmp_path)
    read: list[str] = []
    monkeypatch.setattr(vouched, "sha256", lambda path: read.append(path.name) or "0")
    for _ in range(2):
        with pytest.raises(UserError, match="LAKE-244"):
            require_files(tmp_path, [ref])
    assert sorted(read) == sorted(Path(name).name for name in NAMES)
    harm(slot.path / "attempts/1/card.json")
    content_sha256(slot.path / "attempts/1/card.json")
    assert read.count("card.json") == 2


def test_objects_are_read_too(bucket: UPath) -> None:
    put(bucket / "x", b"bytes")
    assert content_sha256(bucket / "x") == "277089d91c0bdf4f2e6862ba7e4a07605119431f5d13f726dd352b06f1b206a9"
