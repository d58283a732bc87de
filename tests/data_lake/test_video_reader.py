"""Random access to the lake's videos: the right picture of the right file, once decoded, nothing left open."""

import multiprocessing
import os
import pickle
import threading
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from io import BufferedIOBase
from pathlib import Path

import numpy as np
import pytest

from data_lake import video_reader
from data_lake.packets import Packets, index_packets
from data_lake.video_reader import VideoReader
from errors import UserError
from tests.data_lake.lake_fixture import coded_image, mp4, write_videos

NUM_FILES, LENGTH, FPS = 6, 12, 20.0
MANY = 300


def reader_of(path: Path, contents: list[bytes]) -> VideoReader:
    table = write_videos(path, ["top"] * len(contents), range(len(contents)), contents)
    return VideoReader(str(path), table.version, threads=2)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> VideoReader:
    contents = [mp4([coded_image(n, i, "top") for i in range(LENGTH)], FPS) for n in range(NUM_FILES)]
    return reader_of(tmp_path_factory.mktemp("videos") / "videos.lance", contents)


def codes(reader: VideoReader, files: list[int], numbers: list[int]) -> list[tuple[int, int]]:
    """(file, frame) that each picture says it is."""
    found: list[tuple[int, int]] = [(-1, -1)] * len(files)

    def put(place: int, image: np.ndarray) -> None:
        assert found[place] == (-1, -1)
        found[place] = (int(image[0, 0, 0]) - 1, int(image[0, 0, 1]))

    reader.read(np.array(files), np.array(numbers) / FPS, FPS, put)
    return found


def test_every_picture_is_the_one_asked_for(reader: VideoReader) -> None:
    """In random order, some twice."""
    random = np.random.default_rng(0)
    files, numbers = random.integers(0, NUM_FILES, 90).tolist(), random.integers(0, LENGTH, 90).tolist()
    assert codes(reader, files, numbers) == list(zip(files, numbers, strict=True))


def test_nothing_asked_for(reader: VideoReader) -> None:
    assert codes(reader, [], []) == []


def test_neighbours_are_decoded_once(tmp_path: Path) -> None:
    """A key frame at every fifth: frames 1, 3 and 4 are one run from frame 0 on, 6 and 9 another."""
    content = mp4([coded_image(0, i, "top", size=64) for i in range(LENGTH)], FPS, "libsvtav1")
    reader = reader_of(tmp_path / "videos.lance", [content])
    runs = reader.runs(np.zeros(5, int), np.array([4, 1, 9, 3, 6]) / FPS, FPS)
    assert [(run.first, run.last) for run in runs] == [(0, 4), (5, 9)]
    assert [sorted(member for member, _ in run.members) for run in runs] == [[0, 1, 3], [2, 4]]


def test_a_time_without_a_frame_is_said(reader: VideoReader) -> None:
    with pytest.raises(UserError, match=r"(?s)DECODE-004.*0\.600000.*video top, chunk 0, file 2 "):
        codes(reader, [0, 2], [0, LENGTH])


def test_a_broken_video_is_named_and_the_reader_lives_on(tmp_path: Path) -> None:
    good = mp4([np.full((64, 64, 3), 40 * i, np.uint8) for i in range(3)], FPS, "libsvtav1")
    begin = good.index(b"mdat") + 6
    reader = reader_of(tmp_path / "videos.lance", [good[:begin] + b"\xff" * 30 + good[begin + 30 :], good])
    with pytest.raises(UserError, match=r"(?s)DECODE-002.*video top, chunk 0, file 0 "):
        codes(reader, [0], [0])
    assert len(codes(reader, [1, 1, 1], [0, 1, 2])) == 3


def num_open(folder: Path) -> int:
    """Descriptors of this process that lead into the folder; tests before left threads that open and close others."""
    found = 0
    for path in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that lists them, among others
            found += path.readlink().is_relative_to(folder)
    return found


def test_three_hundred_files_leave_descriptors_and_decoders_as_they_are(tmp_path: Path) -> None:
    content = mp4([coded_image(3, i, "top") for i in range(LENGTH)], FPS)
    reader = reader_of(tmp_path / "videos.lance", [content] * MANY)
    codes(reader, list(range(30)), [0] * 30)
    before = num_open(tmp_path)
    for start in range(0, MANY, 30):
        files = list(range(start, start + 30))
        assert codes(reader, files, [5] * 30) == [(3, 5)] * 30
        assert num_open(tmp_path) <= before + 4
    assert reader.decoders.num_opened <= 2 and reader.decoders.num_idle <= 2


def test_tables_of_packets_are_bounded(reader: VideoReader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for two files' tables: reading all six, again and again, holds no more, and is right."""
    monkeypatch.setattr(video_reader, "TABLE_BYTES", 2 * LENGTH * 34 + 1)
    fresh = VideoReader(reader.uri, reader.version, threads=1)
    for _ in range(2):
        assert codes(fresh, list(range(NUM_FILES)), [7] * NUM_FILES) == [(n, 7) for n in range(NUM_FILES)]
        assert len(fresh._known) <= 2


def test_tables_of_several_files_are_read_side_by_side(reader: VideoReader, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(NUM_FILES)

    def met(file: BufferedIOBase, where: str) -> Packets:
        together.wait(timeout=30)
        return index_packets(file, where)

    monkeypatch.setattr(video_reader, "index_packets", met)
    fresh = VideoReader(reader.uri, reader.version, threads=1)
    assert codes(fresh, list(range(NUM_FILES)), [7] * NUM_FILES) == [(n, 7) for n in range(NUM_FILES)]


@pytest.mark.parametrize(("asked", "elsewhere"), [(0, 64), (3, 3)])
def test_how_many_threads_is_decided_where_it_is(asked: int, elsewhere: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    here = VideoReader("videos.lance", 1, asked)
    sent = pickle.dumps(here)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert (here.threads, pickle.loads(sent).threads) == (asked or 2, elsewhere)


def test_pickled_it_begins_anew_elsewhere(reader: VideoReader) -> None:
    """Read here first, so that what must not travel is open; then in a process started afresh."""
    codes(reader, [0], [0])
    assert len(pickle.dumps(reader)) < 1000
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(codes, reader, [4, 1], [3, 11]).result(timeout=60) == [(4, 3), (1, 11)]


def test_closed_it_has_no_threads_and_reads_again(reader: VideoReader) -> None:
    fresh = VideoReader(reader.uri, reader.version, threads=2)
    codes(fresh, list(range(NUM_FILES)), [1] * NUM_FILES)
    fresh.close()
    assert fresh._pool is None and fresh.decoders.num_opened == 0
    assert codes(fresh, [2], [2]) == [(2, 2)]
