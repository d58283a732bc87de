"""Videos through reused memory into a table: every byte arrives, and a file that changes is noticed."""

from functools import partial
from pathlib import Path
from typing import Any

import lance
import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st
from lance.fragment import FragmentMetadata

from data_lake import shelf
from data_lake.schema import VIDEOS
from data_lake.shelf import Shelves
from data_lake.writer import _commit, _write
from errors import Transient


def row(number: int, content: bytes) -> dict[str, Any]:
    named = dict.fromkeys(("chunk_index", "moov_offset", "moov_size"), 0)
    lists: dict[str, list[int]] = {"kf_indices": [0], "kf_positions": [0]}
    digest = blake3(content).hexdigest()
    return {"video_key": "front", "file_index": number, "file_size": len(content), "blake3": digest, **named, **lists}


def stored_in(folder: Path, fragments: list[FragmentMetadata]) -> list[tuple[int, bytes]]:
    """file_index and bytes of each video, in order, once the fragments are a version."""
    table = lance.dataset(str(folder), version=_commit(folder, VIDEOS, fragments))
    numbers = table.to_table(columns=["file_index"])["file_index"].to_pylist()
    blobs = table.take_blobs("video_bytes", indices=list(range(len(numbers))))
    return [(number, blob.readall()) for number, blob in zip(numbers, blobs, strict=True) if blob is not None]


@settings(deadline=None, max_examples=25)
@given(sizes=st.lists(st.integers(1, 300), min_size=1, max_size=12), shelf_bytes=st.integers(1, 400))
def test_every_byte_arrives_in_order(
    sizes: list[int], shelf_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever the size of the shelves: videos larger than one, several on one, and the first shelf used again."""
    folder = tmp_path_factory.mktemp("shelf")
    contents = [bytes([number % 256]) * size for number, size in enumerate(sizes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shelf, "SHELF_BYTES", shelf_bytes)
        shelves = Shelves(folder / "videos.lance", partial(_write, folder / "videos.lance"))
        for number, content in enumerate(contents):
            (folder / f"{number}.mp4").write_bytes(content)
            shelves.put(folder / f"{number}.mp4" if number % 2 else partial(bytes, content), row(number, content))
        fragments = shelves.finish()
    assert stored_in(folder / "videos.lance", fragments) == list(enumerate(contents))


@pytest.mark.parametrize("now", [b"other", b"shor"])
def test_a_file_that_is_no_longer_what_was_examined(now: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(now)
    shelves = Shelves(tmp_path / "videos.lance", partial(_write, tmp_path / "videos.lance"))
    with pytest.raises(Transient, match=r"a\.mp4"):
        shelves.put(path, row(0, b"bytes"))
        shelves.finish()


def test_nothing_put_is_nothing_written(tmp_path: Path) -> None:
    assert Shelves(tmp_path, partial(_write, tmp_path)).finish() == []
    assert list(tmp_path.iterdir()) == []
