"""Frames at any index: rows, chunks, words and pictures are those of the episode, from memory or by takes."""

import io
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from data_lake import frames as module
from data_lake.decode import frames as decoded
from data_lake.frames import FrameReader
from data_lake.version import DatasetVersion, open_version
from errors import UserError
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import LENGTHS, ingest

HORIZON = 5


@pytest.fixture(scope="module")
def version(tmp_path_factory: pytest.TempPathFactory) -> DatasetVersion:
    """Three episodes of 8, 12 and 10 frames."""
    root = tmp_path_factory.mktemp("frames")
    ingest(write_v2(root / "source"), root / "lake/datasets/cart")
    return open_version(root / "lake", "cart")


def expected_images(version: DatasetVersion, camera: str) -> list[np.ndarray]:
    """The oracle: every episode's span decoded in turn, from bytes."""
    found, videos = [], version.table("videos")
    keys = videos.to_table(columns=["video_key", "chunk_index", "file_index"]).to_pylist()
    for episode in version.episodes:
        place = {k: episode[f"videos/{camera}/{k}"] for k in ("chunk_index", "file_index")}
        row = keys.index({"video_key": camera, **place})
        file = io.BytesIO(videos.take_blobs("video_bytes", indices=[row])[0].read())
        from_s = episode[f"videos/{camera}/from_timestamp"]
        wanted = range(episode["length"])
        found += [i for _, i in decoded(file, from_s=from_s, to_s=None, fps=version.info["fps"], wanted=wanted)]
    return found


@pytest.mark.parametrize("kept", [True, False], ids=["from memory", "by takes"])
def test_every_item_is_that_of_the_data_set(
    version: DatasetVersion, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CACHED_ROW_BYTES", 2**28 if kept else 0)
    order = np.random.default_rng(0).permutation(sum(LENGTHS)).tolist() * 2
    found = FrameReader(version, horizon=HORIZON).batch(order)
    table = version.table("frames").to_table().to_pydict()
    words = {number: text for text, number in version.tasks.items()}
    pictures = {camera: expected_images(version, camera) for camera in version.cameras}
    assert pictures and set(found.images) == set(pictures)
    ends = np.repeat(np.cumsum(LENGTHS), LENGTHS)
    for n, index in enumerate(order):
        assert np.array_equal(found.columns["observation.state"][n], np.float32(table["observation_state"][index]))
        assert found.columns["timestamp"][n] == np.float32(table["timestamp"][index])
        assert found.columns["index"][n] == index
        assert found.tasks[n] == words[table["task_index"][index]]
        for h in range(HORIZON):
            inside = index + h < ends[index]
            row = index + h if inside else ends[index] - 1
            assert found.mask_NH[n, h] == inside
            assert np.array_equal(found.columns["action"][n, h], np.float32(table["action"][row]))
        for camera, images in found.images.items():
            assert np.array_equal(images[n], pictures[camera][index])


def test_without_a_horizon_the_action_is_that_of_the_frame(version: DatasetVersion) -> None:
    found = FrameReader(version, cameras=()).batch([3, 29])
    actions = version.table("frames").to_table(columns=["action"])["action"].to_pylist()
    assert found.columns["action"].tolist() == [actions[3], actions[29]]
    assert found.images == {}


def test_columns_of_words_are_left_out(version: DatasetVersion) -> None:
    """A feature that is a string for each frame, as some recorders write beside the numbers."""
    schema = pa.schema([("action", pa.list_(pa.float32(), 2)), ("note", pa.string()), ("index", pa.int64())])
    features = {name: {"dtype": "float32", "shape": [1]} for name in schema.names}
    reader = FrameReader(replace(version, info={**version.info, "features": features}), cameras=())
    assert reader._names(schema) == ["action", "index"]


def test_no_frames(version: DatasetVersion) -> None:
    found = FrameReader(version, horizon=HORIZON).batch([])
    assert found.columns["action"].shape[:2] == (0, HORIZON) and found.tasks == ()


@pytest.mark.parametrize("index", [-1, sum(LENGTHS)])
def test_an_index_outside_is_refused(version: DatasetVersion, index: int) -> None:
    with pytest.raises(UserError, match=f"LOAD-010: no frame {index}:"):
        FrameReader(version).batch([0, index])


@pytest.mark.parametrize("indices", [[0.5], [1.0, 2.0], [True, False], ["3"], [None], np.array([np.nan])])
def test_what_is_no_whole_number_is_no_index(version: DatasetVersion, indices: Any) -> None:
    with pytest.raises(UserError, match="LOAD-014: indices of frames are whole numbers"):
        FrameReader(version).batch(indices)


def test_a_camera_that_an_episode_lacks_is_named(version: DatasetVersion) -> None:
    with pytest.raises(UserError, match="LOAD-011.*episode 0 has no camera"):
        FrameReader(version, cameras=("observation.images.nowhere",)).batch([0])


def test_pictures_of_another_size_are_refused(version: DatasetVersion) -> None:
    camera = version.cameras[0]
    feature = version.info["features"][camera] | {"shape": [2, 3, 3]}
    info = {**version.info, "features": version.info["features"] | {camera: feature}}
    with pytest.raises(UserError, match="LOAD-012"):
        FrameReader(replace(version, info=info)).batch([0])


def test_pickled_it_reads_the_same_elsewhere(version: DatasetVersion, tmp_path: Path) -> None:
    reader = FrameReader(version, horizon=HORIZON)
    here = sum_of(reader, [4, 20])
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(sum_of, reader, [4, 20]).result(timeout=60) == here > 0


@pytest.mark.filterwarnings("ignore:lance is not fork-safe")
@pytest.mark.parametrize("used", [False, True], ids=["fresh", "used before"])
@pytest.mark.parametrize("cameras", [None, ()], ids=["pictures", "rows"])
def test_forked_it_is_refused_at_once(version: DatasetVersion, used: bool, cameras: tuple[str, ...] | None) -> None:
    reader = FrameReader(version, cameras=cameras)
    if used:
        reader.batch([0, 9])
    process = multiprocessing.get_context("fork").Process(target=_refused, args=(reader,))
    process.start()
    process.join(timeout=30)
    process.kill()
    assert process.exitcode == 0


def _refused(reader: FrameReader) -> None:
    with pytest.raises(UserError, match="(?s)LOAD-015.*spawn"):
        reader.batch([0])


def sum_of(reader: FrameReader, indices: list[int]) -> int:
    return sum(int(images.sum()) for images in reader.batch(indices).images.values())
