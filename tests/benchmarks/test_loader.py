"""The large recordings of `bench loader` are what they are said to be, and items are told apart by their digest."""

from pathlib import Path

import av
import numpy as np
import pytest

from benchmarks import loader_sets
from benchmarks.loader import item_digest
from benchmarks.loader_sets import write_av1


def test_large_recordings_are_made_of_the_small_ones(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every packet pair is one of the small set's, every second frame is a key frame, and all of them decode."""
    monkeypatch.setattr(loader_sets, "SMALL", shared_data / loader_sets.SMALL.name)
    monkeypatch.setattr(loader_sets, "EPISODE_FRAMES", 12)
    videos = sorted(write_av1(tmp_path / "made", 1).rglob("*.mp4"))
    assert len(videos) == 4  # two episodes, two cameras
    for path in videos:
        with av.open(path) as container:
            assert [p.is_keyframe for p in container.demux(video=0) if p.pts is not None] == [True, False] * 6
        with av.open(path) as container:
            assert len(list(container.decode(video=0))) == 12


def test_digests_see_names_types_shapes_and_values() -> None:
    items = [
        {"a": np.zeros(2, np.float32)},
        {"b": np.zeros(2, np.float32)},
        {"a": np.zeros(2, np.int32)},
        {"a": np.zeros((2, 1), np.float32)},
        {"a": np.array([0, 1], np.float32)},
        {"a": "0 0"},
    ]
    assert len({item_digest(item) for item in items}) == len(items)
