"""Videos that stay where they are: the same content as copied ones, and an error wherever the file is another."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import lance
import numpy as np
import pytest

from data_lake.doctor import doctor
from data_lake.exports import publish_folder
from data_lake.frames import FrameReader
from data_lake.gc import find_garbage, remove
from data_lake.identity import canonical
from data_lake.images import ImageSource, prepared_images
from data_lake.ingested import Ingested
from data_lake.published import publish_lance
from data_lake.references import open_reference, referenced
from data_lake.specs import IngestSpec
from data_lake.stored_videos import open_video
from data_lake.tables import open_table, read_manifest
from data_lake.version import DatasetVersion, open_version
from data_lake.view import Span
from errors import UserError
from tests.data_lake.recordings import CAMERA, add_pictures, write_v2, write_v3
from tests.data_lake.seen import content, ingest

COPIED = IngestSpec(dataset="cart", embodiment="cart")
LEFT = IngestSpec(dataset="cart", embodiment="cart", copy="reference")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """In a folder whose name a URI must escape."""
    return write_v2(tmp_path / "söurce 1%20#2")


@pytest.fixture
def root(tmp_path: Path, source: Path) -> Path:
    ingest(source, tmp_path / "lake/datasets/cart", LEFT)
    return tmp_path / "lake/datasets/cart"


def files_of(source: Path) -> list[Path]:
    return sorted(source.rglob("*.mp4"))


def videos_of(root: Path) -> lance.LanceDataset:
    manifest = read_manifest(root)
    assert manifest is not None
    return open_table(root, manifest, "videos")


def left_in(root: Path) -> list[Path]:
    return sorted(referenced(videos_of(root)).values())


def bytes_of(root: Path, number: int) -> bytes:
    table = videos_of(root)
    with open_video(table.uri, table.version, CAMERA, 0, number, where=f"episode {number}") as file:
        return file.read()


def stored_bytes(root: Path) -> int:
    return sum(path.stat().st_size for path in (root / "videos.lance").rglob("*") if path.is_file())


def version_of(root: Path) -> DatasetVersion:
    return open_version(root.parent.parent, root.name)


def other_pixels(path: Path) -> None:
    """As many bytes as before, one of them another, and the time of before: only the hash can tell."""
    stat, whole = path.stat(), bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_the_content_is_that_of_a_copy(root: Path, source: Path, tmp_path: Path) -> None:
    copied = ingest(source, tmp_path / "copied/datasets/cart", COPIED)
    again = ingest(source, root, LEFT)
    assert (again.num_new, again.fingerprint) == (0, copied.fingerprint)
    assert content(root) == content(tmp_path / "copied/datasets/cart")
    assert left_in(root) == files_of(source)
    assert [bytes_of(root, number) for number in range(3)] == [path.read_bytes() for path in files_of(source)]
    assert read_manifest(root) == version_of(root).manifest and version_of(root).manifest.version == 1
    assert doctor(str(root))["findings"] == [] and doctor(str(root))["episodes"]["ok"] == 3


def test_where_bytes_lie_is_no_identity() -> None:
    assert canonical(LEFT) == canonical(COPIED)


def test_bytes_are_not_copied(tmp_path: Path) -> None:
    source = write_v2(tmp_path / "source")
    for path in files_of(source):  # padded: a free box of a mebibyte behind the movie
        path.write_bytes(path.read_bytes() + (1 << 20).to_bytes(4, "big") + b"free" + bytes((1 << 20) - 8))
    for name, spec in (("left", LEFT), ("copied", COPIED)):
        ingest(source, tmp_path / name, spec)
    assert stored_bytes(tmp_path / "left") < 1 << 16 < 3 << 20 < stored_bytes(tmp_path / "copied")


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda path: path.unlink(), "LAKE-197"),
        (lambda path: path.rename(path.with_suffix(".gone")), "LAKE-197"),
        (lambda path: path.write_bytes(path.read_bytes() + b"\0"), "LAKE-198"),
        (lambda path: path.write_bytes(b""), "LAKE-198"),
        (other_pixels, "LAKE-198"),
    ],
    ids=["gone", "renamed", "longer", "empty", "other pixels"],
)
def test_another_file_is_an_error_for_every_reader(
    spoil: Callable[[Path], Any], code: str, root: Path, source: Path, tmp_path: Path
) -> None:
    """Read before, so that what this process verified must not be believed any longer."""
    victim = files_of(source)[1]
    assert bytes_of(root, 1) == victim.read_bytes()
    spoil(victim)
    with pytest.raises(UserError) as refused:
        bytes_of(root, 1)
    assert refused.value.code == code and refused.value.where == f"{victim} · episode 1"
    assert bytes_of(root, 0) == files_of(source)[0].read_bytes() and len(bytes_of(root, 2)) > 0
    (found,) = doctor(str(root))["findings"]
    assert (found["code"], found["episode"], found["camera"], found["file"]) == (code, 1, CAMERA, str(victim))
    assert doctor(str(root))["episodes"] == {"in": 3, "ok": 2, "quarantined": 1}
    for publish in (publish_lance, lambda version: publish_folder(version, tmp_path / "out", "v3.0")):
        with pytest.raises(UserError) as stopped:
            publish(version_of(root))
        assert stopped.value.code == code and "episode" in (stopped.value.where or "")
    assert not (tmp_path / "out").exists() and not list((root / "published").glob("0*"))


def test_preprocessing_names_the_file_and_the_episode(root: Path, source: Path) -> None:
    span = Span(view="front", video_key=CAMERA, chunk_index=0, file_index=1, from_s=0.0, to_s=1.2)
    table, prepare = videos_of(root), "tests.data_lake.model_functions:prepare_view"
    place = {"videos_uri": table.uri, "videos_version": table.version, "colour_order": "rgb"}
    source_of = ImageSource(**place, image_orientation="upright", fps=10.0, prepare=prepare, inputs={"image_size": 16})
    assert [image.shape for image, _ in prepared_images(source_of, span, (0, 7), 1)] == [(16, 16, 3)] * 2
    other_pixels(files_of(source)[1])
    with pytest.raises(UserError, match="not what came in") as refused:
        list(prepared_images(source_of, span, (0, 7), 1))
    assert refused.value.where == f"{files_of(source)[1]} · episode 1 · view front"


def test_frames_at_any_index_are_those_of_a_copy(root: Path, source: Path) -> None:
    ingest(source, root.parent / "copied", COPIED)
    left, copied = (FrameReader(open_version(root.parents[1], name)).batch([25, 3, 17]) for name in ("cart", "copied"))
    assert all(np.array_equal(left.images[name], copied.images[name]) for name in copied.images)
    other_pixels(files_of(source)[0])
    with pytest.raises(UserError, match="LAKE-198"):
        FrameReader(open_version(root.parents[1], "cart")).batch([3])


def test_a_file_that_was_only_touched_is_the_same(root: Path, source: Path) -> None:
    os.utime(files_of(source)[0])
    assert bytes_of(root, 0) == files_of(source)[0].read_bytes()


def test_a_file_is_hashed_once(root: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bytes_of(root, 0)
    monkeypatch.setattr("data_lake.references._digest", lambda _: pytest.fail("it was hashed already"))
    assert bytes_of(root, 0) == files_of(source)[0].read_bytes()


def test_moved_files_are_found_where_they_are_now(root: Path, source: Path, tmp_path: Path) -> None:
    moved = source.rename(tmp_path / "elsewhere")
    done = ingest(moved, root, LEFT)
    assert (done.num_new, version_of(root).manifest.version) == (0, 2)
    assert left_in(root) == files_of(moved)
    assert doctor(str(root))["findings"] == []
    assert content(root) == content(root, 1), "only where bytes lie changed"


@pytest.mark.parametrize(
    ("spec", "step"),
    [
        *((spec, step) for spec in (LEFT, COPIED) for step in ("writer._commit", "writer.put_if_absent")),
        (LEFT, "references._write"),
        (COPIED, "shelf.sync"),
    ],
)
def test_readers_see_the_old_places_until_the_new_ones_are_whole(
    spec: IngestSpec, step: str, root: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = Path(shutil.copytree(source, tmp_path / "elsewhere"))
    with monkeypatch.context() as broken:
        broken.setattr(f"data_lake.{step}", Mock(side_effect=MemoryError))
        with pytest.raises(MemoryError):
            ingest(moved, root, spec)
    assert (version_of(root).manifest.version, left_in(root)) == (1, files_of(source))
    assert doctor(str(root))["findings"] == []
    ingest(moved, root, spec)
    assert left_in(root) == (files_of(moved) if spec is LEFT else [])
    assert content(root) == content(root, 1) and doctor(str(root))["findings"] == []


def test_copying_takes_the_bytes_in(root: Path, source: Path) -> None:
    before = [path.read_bytes() for path in files_of(source)]
    done = ingest(source, root, COPIED)
    assert (done.num_new, left_in(root), content(root)) == (0, [], content(root, 1))
    shutil.rmtree(source)
    assert [bytes_of(root, number) for number in range(3)] == before
    assert ingest_counts(root) == (3, 30, 3) and doctor(str(root))["findings"] == []


def ingest_counts(root: Path) -> tuple[int, int, int]:
    manifest = version_of(root).manifest
    return manifest.num_episodes, manifest.num_frames, manifest.num_videos


def test_both_kinds_in_one_set(root: Path, source: Path, tmp_path: Path) -> None:
    """Two more sources, one copied, one left; then the first one is taken in too: the rest stays as it is."""
    copied, left = write_v2(tmp_path / "copied", (5, 6)), write_v2(tmp_path / "left", (7, 9, 4))
    ingest(copied, root, COPIED)
    ingest(left, root, LEFT)
    assert left_in(root) == sorted(files_of(source) + files_of(left))
    everything = content(root)
    ingest(source, root, COPIED)
    assert left_in(root) == files_of(left) and content(root) == everything
    assert ingest_counts(root) == (8, 61, 8) and doctor(str(root))["findings"] == []


def test_a_stored_video_is_not_left_again(tmp_path: Path, source: Path) -> None:
    ingest(source, tmp_path / "cart", COPIED)
    ingest(source, tmp_path / "cart", LEFT)
    assert left_in(tmp_path / "cart") == []


def test_pictures_are_stored_all_the_same(tmp_path: Path) -> None:
    """A lossless video made of them has no file to refer to."""
    side = "observation.images.side"
    image = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
    source = add_pictures(write_v2(tmp_path / "source"), lambda episode, frame: image + episode + frame, side)
    ingest(source, tmp_path / "cart", LEFT)
    assert left_in(tmp_path / "cart") == files_of(source) and videos_of(tmp_path / "cart").count_rows() == 6
    assert doctor(str(tmp_path / "cart"))["findings"] == []


def test_what_is_given_out_is_whole(root: Path, source: Path, tmp_path: Path) -> None:
    before = [path.read_bytes() for path in files_of(source)]
    ingest(write_v2(tmp_path / "copied", (5, 6)), root, COPIED)
    folder, findings = publish_lance(version_of(root))
    assert [(item.code, "3 of 5" in item.message) for item in findings] == [("LAKE-199", True)]
    for form in ("v3.0", "v2.1"):
        publish_folder(version_of(root), tmp_path / form, form)
        assert set(before) < {path.read_bytes() for path in (tmp_path / form).rglob("*.mp4")}
    shutil.rmtree(source)
    videos = lance.dataset(str(folder / "videos.lance"))
    assert referenced(videos) == {} and videos.count_rows() == 5
    assert set(before) < {found for _, found in videos.read_blobs("video_bytes", indices=list(range(5)))}
    taken = ingest(folder, tmp_path / "again/datasets/cart", COPIED)
    assert (taken.num_episodes, taken.num_quarantined) == (5, 0)


def test_nothing_is_collected_that_a_version_needs(root: Path, source: Path, tmp_path: Path) -> None:
    ingest(source.rename(tmp_path / "elsewhere"), root, LEFT)
    before = content(root), content(root, 1)
    remove(find_garbage(root.parent.parent, grace_s=-1.0))
    assert (content(root), content(root, 1)) == before and left_in(root) == files_of(tmp_path / "elsewhere")


def test_a_joint_file_is_referred_to_once(tmp_path: Path, source: Path) -> None:
    joint = write_v3(tmp_path / "v3", source)
    done: Ingested = ingest(joint, tmp_path / "cart", LEFT)
    assert done.num_episodes == 3 and left_in(tmp_path / "cart") == files_of(joint)
    assert len(files_of(joint)) == videos_of(tmp_path / "cart").count_rows() == 1


def test_a_folder_in_its_place_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be opened") as refused:
        open_reference(tmp_path, 1, "", "here")
    assert refused.value.code == "LAKE-197"
