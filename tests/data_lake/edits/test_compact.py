"""Compaction: fewer files, the same rows, bytes and identity; what is not what was recorded stops it."""

from pathlib import Path

import lance
import pytest
from lance.fragment import FragmentMetadata

from data_lake.doctor import doctor
from data_lake.edits import compact as module
from data_lake.edits.compact import compact
from data_lake.head import look_at_head, take_head
from data_lake.published import publish_lance
from data_lake.schema import fixed, vectors
from data_lake.tables import dataset_root, open_table, read_manifest, versions
from data_lake.version import open_version
from data_lake.writer import Writer
from errors import UserError
from tests.data_lake.crashing_ingest import SPEC
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import content, ingest

STEPS = (8, 12, 10, 6)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A data set that grew by an episode at a time."""
    for count in range(1, len(STEPS) + 1):
        ingest(write_v2(tmp_path / f"source-{count}", STEPS[:count]), tmp_path / "lake/datasets/cart")
    return tmp_path / "lake"


def fragments(lake: Path, named: str = "cart") -> dict[str, int]:
    version = open_version(lake, named)
    return {name: len(version.table(name).get_fragments()) for name in ("frames", "videos")}


def bytes_of(lake: Path, named: str = "cart") -> list[bytes]:
    version = open_version(lake, named)
    rows = list(range(version.manifest.num_videos))
    return [bytes(held) for _, held in version.table("videos").read_blobs("video_bytes", indices=rows)]


def test_fewer_files_hold_the_same(lake: Path) -> None:
    before, videos = content(dataset_root(lake, "cart")), bytes_of(lake)
    assert fragments(lake) == {"frames": 4, "videos": 4}
    made = compact(lake, "cart", who="ada")
    assert (made.version, made.is_new) == (5, True)
    assert made.told == {name: {"fragments_before": 4, "fragments": 1} for name in ("frames", "videos")}
    assert fragments(lake) == {"frames": 1, "videos": 1} and fragments(lake, "cart@4") == {"frames": 4, "videos": 4}
    assert content(dataset_root(lake, "cart")) == content(dataset_root(lake, "cart"), 4) == before
    assert bytes_of(lake) == videos == bytes_of(lake, "cart@4")
    assert doctor("cart", lake=lake)["findings"] == []
    assert not compact(lake, "cart", who="ada").is_new and versions(dataset_root(lake, "cart")) == [1, 2, 3, 4, 5]


def test_nothing_downstream_is_another(lake: Path, tmp_path: Path) -> None:
    """The snapshot, which decides the slot of ingest, and what the view is known by from there on."""
    seen = []
    for number in range(2):
        snapshot, out = look_at_head(lake, "lake:cart"), tmp_path / f"out{number}"
        out.mkdir()
        seen.append((snapshot.fingerprint, take_head(lake, snapshot, SPEC, out).fingerprint))
        compact(lake, "cart", who="ada")
    assert seen[0] == seen[1]


def test_it_grows_on_and_is_published(lake: Path, tmp_path: Path) -> None:
    compact(lake, "cart", who="ada")
    assert ingest(write_v2(tmp_path / "more", (*STEPS, 7)), dataset_root(lake, "cart")).num_new == 1
    assert fragments(lake) == {"frames": 2, "videos": 2} and doctor("cart", lake=lake)["findings"] == []
    folder, _ = publish_lance(open_version(lake, "cart@5"))
    assert (folder / "frames.lance").is_dir()


def test_what_is_large_already_stays(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only neighbours that are both less than half full are written together; the others' files are the same ones."""
    sizes = iter([10_000, 90_000, 20_000, 30_000])
    monkeypatch.setattr(module, "FRAGMENT_BYTES", 100_000)
    monkeypatch.setattr(module, "_num_bytes", lambda _: next(sizes, 90_000))
    before = content(dataset_root(lake, "cart"))
    made = compact(lake, "cart", who="ada")
    assert made.told["frames"] == {"fragments_before": 4, "fragments": 3}
    assert made.told["videos"] == {"fragments_before": 4, "fragments": 4}
    assert content(dataset_root(lake, "cart")) == before
    old, new = (read_manifest(dataset_root(lake, "cart"), version) for version in (4, 5))
    assert old is not None and new is not None and old.vector["videos"] == new.vector["videos"]
    paths = [
        [part.data_files()[0].path for part in open_table(dataset_root(lake, "cart"), each, "frames").get_fragments()]
        for each in (old, new)
    ]
    assert paths[1][:2] == paths[0][:2] and len({*paths[1]} - {*paths[0]}) == 1


def test_a_group_may_become_several(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fragment is written as soon as it is full, whatever stands next to it."""
    rows = open_version(lake, "cart").table("frames").head(1).nbytes
    monkeypatch.setattr(module, "FRAGMENT_BYTES", 25 * rows)
    before = content(dataset_root(lake, "cart"))
    assert compact(lake, "cart", who="ada").told["frames"] == {"fragments_before": 4, "fragments": 2}
    assert content(dataset_root(lake, "cart")) == before


def test_what_came_out_differently_is_no_version(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that loses a number: every row is there, in its place, and one is not what it was."""
    before = content(dataset_root(lake, "cart"))

    def careless(writer: Writer, table: lance.LanceDataset, _groups: object) -> list[FragmentMetadata]:
        rows = table.to_table()
        action_TD = vectors(rows["action"])
        assert action_TD is not None
        changed_TD = action_TD.copy()
        changed_TD[17, 0] += 1
        place = rows.column_names.index("action")
        return writer.write_frames(rows.set_column(place, rows.schema.field(place), fixed(changed_TD)))

    monkeypatch.setattr(module, "_frames", careless)
    with pytest.raises(UserError, match="rows 0 to") as refused:
        compact(lake, "cart", who="ada")
    assert refused.value.code == "LAKE-186"
    assert versions(dataset_root(lake, "cart")) == [1, 2, 3, 4] and content(dataset_root(lake, "cart")) == before


def test_a_spoilt_video_stops_it(lake: Path) -> None:
    """Its bytes are compared with what was recorded when they are read."""
    blobs = sorted((lake / "datasets/cart/videos.lance/data").rglob("*.blob"))
    spoilt = blobs[0] if blobs else sorted((lake / "datasets/cart/videos.lance/data").glob("*.lance"))[0]
    held = bytearray(spoilt.read_bytes())
    place = held.find(b"mdat") + 40
    held[place] ^= 0xFF
    spoilt.write_bytes(held)
    with pytest.raises(UserError, match="LAKE-186.*another BLAKE3|LAKE-076.*is damaged"):
        compact(lake, "cart", who="ada")
    assert versions(dataset_root(lake, "cart")) == [1, 2, 3, 4]
