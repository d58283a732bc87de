"""The three tables change together: crashes at every step, rivals, readers that stay where they are."""

import threading
from pathlib import Path

import numpy as np
import pyarrow as pa

from data_lake.schema import fixed
from data_lake.tables import Manifest, open_table, read_manifest, read_meta, versions
from data_lake.video import index_video
from data_lake.writer import Writer
from tests.data_lake.recordings import colour, write_video


def rows(first: int, count: int) -> pa.Table:
    return pa.table(
        {
            "index": pa.array(np.arange(first, first + count)),
            "observation_state": fixed(np.full((count, 3), first, np.float32)),
        }
    )


def append(root: Path, count: int, *, meta: bytes = b"{}") -> Manifest | None:
    writer = Writer(root)
    writer.add_frames(rows(writer.num_frames, count))
    return writer.commit({"info.json": meta}, num_episodes=(writer.base.num_episodes if writer.base else 0) + 1)


def indices(root: Path, version: int | None = None) -> list[int]:
    manifest = read_manifest(root, version)
    assert manifest is not None
    return open_table(root, manifest, "frames").to_table()["index"].to_pylist()


def test_an_append_is_one_version(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) is None
    first, second = append(tmp_path, 5), append(tmp_path, 3)
    assert first is not None and second is not None
    assert (first.version, second.version, versions(tmp_path)) == (1, 2, [1, 2])
    assert (first.num_frames, second.num_frames, second.num_episodes) == (5, 8, 2)
    assert indices(tmp_path) == list(range(8))
    assert indices(tmp_path, 1) == list(range(5)), "an old version stays as it was"


def test_meta_is_that_of_its_version(tmp_path: Path) -> None:
    for content in (b"one", b"two"):
        append(tmp_path, 1, meta=content)
    manifests = [read_manifest(tmp_path, version) for version in (1, 2)]
    assert [read_meta(tmp_path, each) for each in manifests if each] == [{"info.json": b"one"}, {"info.json": b"two"}]


def test_what_a_crash_left_never_enters_a_version(tmp_path: Path) -> None:
    append(tmp_path, 5)
    lost = Writer(tmp_path)
    lost.add_frames(rows(5, 100))
    lost.add_frames(rows(105, 100))
    lost._flush_frames()
    lost._commit_table("frames", rows(0, 1).schema, [each for _, group in lost._frames for each in group])
    assert indices(tmp_path) == list(range(5))
    append(tmp_path, 3)
    assert indices(tmp_path) == list(range(8)), "row N is absolute frame N"


def test_of_two_writers_the_second_begins_again(tmp_path: Path) -> None:
    append(tmp_path, 5)
    one, other = Writer(tmp_path), Writer(tmp_path)
    one.add_frames(rows(5, 2))
    other.add_frames(rows(5, 4))
    assert one.commit({"info.json": b"one"}, num_episodes=2) is not None
    assert other.commit({"info.json": b"other"}, num_episodes=2) is None
    assert indices(tmp_path) == list(range(7))
    append(tmp_path, 4)
    assert indices(tmp_path) == list(range(11))


def test_many_writers_at_once(tmp_path: Path) -> None:
    """Each acknowledged append is there once, in order; the first version is one of the races."""
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(3):
                while append(tmp_path, 2) is None:
                    pass
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert versions(tmp_path) == list(range(1, 13))
    assert indices(tmp_path) == list(range(24))


def test_videos_are_stored_as_they_came_and_once(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.mp4" for number in range(2)]
    for number, path in enumerate(paths):
        write_video(path, [colour(number, frame) for frame in range(6)])
    root = tmp_path / "cart"
    for _ in range(2):
        writer = Writer(root)
        places = [writer.add_video("front", path, index_video(path)) for path in (*paths, paths[0])]
        places.append(writer.add_video("wrist", paths[0], index_video(paths[0])))
        assert [(place.chunk_index, place.file_index) for place in places] == [(0, 0), (0, 1), (0, 0), (0, 0)]
        writer.add_frames(rows(writer.num_frames, 1))
        writer.commit({"info.json": b"{}"}, num_episodes=1)
    manifest = read_manifest(root)
    assert manifest is not None and manifest.num_videos == 3
    table = open_table(root, manifest, "videos")
    stored = [content for _, content in table.read_blobs("video_bytes", indices=[0, 1, 2])]
    assert stored == [paths[0].read_bytes(), paths[1].read_bytes(), paths[0].read_bytes()]
    row = table.to_table(columns=["kf_indices", "file_size", "moov_offset"]).to_pylist()[0]
    assert row["kf_indices"] == [0, 5] and row["file_size"] == paths[0].stat().st_size
    assert stored[0][row["moov_offset"] + 4 : row["moov_offset"] + 8] == b"moov"
