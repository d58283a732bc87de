"""A data set on an object store is what it is in a folder: the same content, crashes, versions, samples and batches."""

import threading
import time
from dataclasses import asdict
from pathlib import Path
from unittest.mock import Mock, patch

import lance
import numpy as np
import pytest
from upath import UPath

from data_lake import objects, shelf
from data_lake.doctor import doctor
from data_lake.exports import publish_folder
from data_lake.files import replace
from data_lake.gc import find_garbage, remove
from data_lake.journal import FOLDER
from data_lake.loader import Loader
from data_lake.packing import Packing
from data_lake.preprocess import preprocess_view
from data_lake.published import publish_lance
from data_lake.shelf import Shelves
from data_lake.sources.lerobot import LeRobotFolder
from data_lake.specs import IngestSpec, ReadSpec
from data_lake.tables import open_table, read_manifest, versions
from data_lake.version import open_version
from data_lake.writer import Writer
from tests.data_lake.conftest import CodedLake
from tests.data_lake.crashing_ingest import STEPS
from tests.data_lake.lake_fixture import request_for
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import LENGTHS, content, ingest
from tests.data_lake.test_ingest_crashes import crash
from tests.data_lake.test_loader import loader_of
from tests.data_lake.test_published import read_as_a_stranger

GR1 = IngestSpec(dataset="gr1", embodiment="gr1", read=ReadSpec(ignore_tasks=("valid",), action_mode="absolute"))


def copied(source: UPath, target: UPath) -> UPath:
    for name in objects.below(source):
        objects.copy(source / name, target / name)
    return target


def put(folder: Path, target: UPath) -> UPath:
    objects.upload(folder, target, lambda: None)
    return target


def test_recorded_robot_data_are_the_same_as_in_a_folder(shared_data: Path, bucket: UPath, tmp_path: Path) -> None:
    source = shared_data / "lerobot-v2.0-gr1-picknplace"
    roots = [lake / "datasets/gr1" for lake in (tmp_path, bucket)]
    for root in roots:
        assert [ingest(source, root, GR1).num_new for _ in range(2)] == [5, 0] and versions(root) == [1]
    assert content(roots[0]) == content(roots[1])
    found = doctor("gr1", lake=bucket)
    assert found["episodes"] == {"in": 5, "ok": 5, "quarantined": 0}
    assert found == doctor("gr1", lake=tmp_path)


ALL_STEPS = tuple(range(1, 2 * STEPS + 1))


@pytest.mark.parametrize("steps", [(13, 14), pytest.param(ALL_STEPS, marks=pytest.mark.slow)])
def test_a_crash_at_any_step_shows_all_or_nothing(steps: tuple[int, ...], bucket: UPath, tmp_path: Path) -> None:
    """SIGKILL before and after a write or commit; the same command then ends where no crash would have."""
    short, whole = write_v2(tmp_path / "short", LENGTHS[:2]), write_v2(tmp_path / "whole", LENGTHS)
    ingest(short, bucket / "started")
    old = content(bucket / "started")
    ingest(whole, copied(bucket / "started", bucket / "undisturbed"))
    new = content(bucket / "undisturbed")
    copies = {step: copied(bucket / "started", bucket / f"copy{step}") for step in steps}
    assert crash(whole, [f"{copy}:{step}" for step, copy in copies.items()]) == ["killed"] * len(steps)
    for step, copy in copies.items():
        is_done = step == 2 * STEPS  # killed after the manifest was put
        assert content(copy) == (new if is_done else old), step
        assert ingest(whole, copy).num_new == (0 if is_done else 1)
        assert content(copy) == new and versions(copy) == [1, 2], step


def test_an_unfinished_ingest_is_taken_up_and_what_is_known_is_not_opened(
    bucket: UPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths, stop = (8, 12, 10, 9, 11), Mock(side_effect=[None] * 4 + [MemoryError])
    source, root = write_v2(tmp_path / "v2", lengths), bucket / "datasets/cart"
    monkeypatch.setattr(shelf, "SHELF_BYTES", 1)
    with pytest.raises(MemoryError):
        ingest(source, root, check=stop, on_progress=lambda *_: time.sleep(0.3))
    assert list((root / FOLDER).glob("*/*.arrow")) and not versions(root)
    with patch.object(Shelves, "put", autospec=True, side_effect=Shelves.put) as put_again:
        assert ingest(source, root).num_new == 5
    assert 1 <= put_again.call_count < 5
    assert not list((root / FOLDER).glob("*")) and list((root / "examined").glob("*.npz"))
    ingest(source, tmp_path / "cart", digests={})
    assert content(root) == content(tmp_path / "cart")
    monkeypatch.setattr(LeRobotFolder, "_episode", Mock(side_effect=AssertionError("it is known")))
    assert (ingest(source, root).num_new, versions(root)) == (0, [1])


def test_two_at_once_put_each_episode_in_once(bucket: UPath, tmp_path: Path) -> None:
    """Both read the same base; the one that comes second reads again and finds its episodes there."""
    source, root, barrier = write_v2(tmp_path / "v2", LENGTHS), bucket / "datasets/cart", threading.Barrier(2)
    new: list[int] = []

    def work() -> None:
        met: list[bool] = []

        def meet(number: int, total: int, _figures: dict[str, float]) -> None:
            if number == total and not met:
                met.append(True)
                barrier.wait(timeout=60)

        new.append(ingest(source, root, on_progress=meet).num_new)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(new) == [0, 3] and versions(root) == [1]
    assert content(root)["frames"]["index"] == list(range(sum(LENGTHS)))


def test_what_a_crash_left_is_garbage_and_no_version_loses_by_it(bucket: UPath, tmp_path: Path) -> None:
    source, root = write_v2(tmp_path / "v2", LENGTHS), bucket / "datasets/cart"
    ingest(source, root)
    lost = Writer(root)
    lost.add_frames(open_table(root, read_manifest(root), "frames").to_table())  # type: ignore[arg-type]
    lost._flush_frames()
    left = {f"frames.lance/data/{file.path}" for _, group in lost._frames for each in group for file in each.files}
    place = root / "published/000001/0123"
    (place / "frames.lance/data/x.lance").write_bytes(b"12345")
    folder, _ = publish_lance(open_version(bucket, "cart"))
    before = content(root)
    assert find_garbage(bucket, grace_s=60) == []
    garbage = find_garbage(bucket, grace_s=0)
    paths = {each.path.as_posix().removeprefix(f"{root}/") for each in garbage}
    assert left | {"published/000001/0123"} <= paths
    assert remove(garbage) == sum(each.num_bytes for each in garbage) > 0
    assert not any((root / name).exists() for name in left) and not place.exists()
    assert content(root) == before and read_as_a_stranger(folder)[0] == list(range(sum(LENGTHS)))  # type: ignore[arg-type]
    assert find_garbage(bucket, grace_s=0) == []


def test_a_published_version_never_changes(bucket: UPath, tmp_path: Path) -> None:
    ingest(write_v2(tmp_path / "v2", LENGTHS), bucket / "datasets/cart")
    folder, findings = publish_lance(open_version(bucket, "cart"))
    files, seen = objects.below(folder), read_as_a_stranger(folder)  # type: ignore[arg-type]
    assert findings == [] and seen[0] == list(range(sum(LENGTHS)))
    assert {"meta/info.json", "meta/stats.json"} <= files.keys()
    assert lance.dataset(str(folder / "meta.lance")).count_rows() == sum(name.startswith("meta/") for name in files)
    ingest(write_v2(tmp_path / "later", (6, 7)), bucket / "datasets/cart")
    assert publish_lance(open_version(bucket, "cart@1"))[0] == folder
    assert publish_lance(open_version(bucket, "cart"))[0] != folder
    assert objects.below(folder) == files and read_as_a_stranger(folder) == seen  # type: ignore[arg-type]
    publish_folder(open_version(bucket, "cart@1"), tmp_path / "folder", "v3.0")
    assert [each.length for each in LeRobotFolder(tmp_path / "folder").episodes()] == list(LENGTHS)


def test_samples_and_batches_are_the_same(coded: CodedLake, bucket: UPath, tmp_path: Path) -> None:
    """Made from tables on the store, put there, and read back from there by URI."""
    dataset = put(coded.dataset, bucket / "datasets/coded")
    made = preprocess_view(coded.view, dataset, request_for(heldout_episodes=(16,)), tmp_path)
    assert asdict(made) == asdict(coded.made)
    there = put(tmp_path, bucket / "preprocess/a")
    here = loader_of(coded.out)
    here.packing.save(tmp_path)
    packed = put(tmp_path, bucket / "pack/a")
    loader = Loader(there, Packing.load(packed), seed=0, rows_per_step=3)
    for mine, theirs in zip(loader.batches(0, 4), here.batches(0, 4), strict=True):
        for name, value in vars_of(mine).items():
            np.testing.assert_array_equal(value, vars_of(theirs)[name], err_msg=name)


def vars_of(batch: object) -> dict[str, object]:
    return {name: getattr(batch, name) for name in type(batch).__slots__}


def test_doctor_names_a_torn_manifest(bucket: UPath, tmp_path: Path) -> None:
    root = bucket / "datasets/cart"
    ingest(write_v2(tmp_path / "v2", LENGTHS), root)
    replace(root / "manifests/000001.json", b"{")
    assert [found["code"] for found in doctor("cart", lake=bucket)["findings"]] == ["LAKE-074"]
