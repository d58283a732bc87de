"""LeRobot 0.3.3, the last to read v2.1, on what the lake gives out as v2.1; runs where there is its environment."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.peer import peers_python
from data_lake.decode import frames
from data_lake.exports import publish_folder
from data_lake.schema import lake_name, vectors
from data_lake.stored_videos import open_video
from data_lake.version import DatasetVersion, open_version
from tests.architecture.tree import ROOT
from tests.data_lake.seen import ingest

OFFLINE = {**os.environ, "HF_HUB_OFFLINE": "1"}
PLACE = {"episode_index", "index"}


@pytest.fixture(scope="module")
def peers() -> Path:
    python = peers_python("peers_v21")
    if python is None:
        pytest.skip("no environment of LeRobot 0.3.3: see deployments/envs/peers_v21.txt")
    return python


def said(python: Path, script: str, *words: object) -> str:
    command = [str(python), str(ROOT / "benchmarks/peers" / script), *map(str, words)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, env=OFFLINE)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout


def opened(python: Path, *words: object) -> dict[str, Any]:
    return json.loads(said(python, "strangers_v21.py", *words).splitlines()[-1])


def given_out(source: Path, folder: Path) -> DatasetVersion:
    """In a lake of `folder`, and as v2.1 in `folder`/out."""
    ingest(source, folder / "lake/datasets/cart")
    version = open_version(folder / "lake", "cart")
    publish_folder(version, folder / "out", "v2.1")
    return version


def pictures(version: DatasetVersion, camera: str, items: np.ndarray, episodes: np.ndarray) -> Iterator[np.ndarray]:
    """(3, H, W) of those frames as this project decodes them. items: frame numbers, episodes: whose they are."""
    table = version.table("videos")
    for episode in version.episodes:
        wanted = items[episodes == episode["episode_index"]].tolist()
        place = (episode[f"videos/{camera}/chunk_index"], episode[f"videos/{camera}/file_index"])
        begin, end = (episode[f"videos/{camera}/{name}_timestamp"] for name in ("from", "to"))
        with open_video(table.uri, table.version, camera, *place) as file:
            for _, image in frames(file, from_s=begin, to_s=end, fps=version.info["fps"], wanted=wanted):
                yield image.transpose(2, 0, 1)


def assert_same(version: DatasetVersion, archive: Path) -> None:
    """What LeRobot decoded of the folder is what the lake holds: every column, every pixel, to the last bit."""
    with np.load(archive) as seen:
        rows, chosen = version.table("frames").to_table(), seen["index"]
        assert {*seen.files} == {*version.columns, *version.cameras}
        for key in version.columns:
            expected = vectors(rows[lake_name(key)])
            assert expected is not None
            assert np.array_equal(seen[key].reshape(len(chosen), -1), expected[chosen]), key
        for camera in version.cameras:
            ours = np.stack(list(pictures(version, camera, seen["frame_index"], seen["episode_index"])))
            assert np.array_equal(seen[camera], ours), camera


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "counts"), [("lerobot-v2.0-gr1-picknplace", (2096, 5)), ("lerobot-v3.0-metaworld-by-lerobot", (254, 3))]
)
def test_other_versions_become_v21(
    name: str, counts: tuple[int, int], peers: Path, shared_data: Path, tmp_path: Path
) -> None:
    version = given_out(shared_data / name, tmp_path)
    archive = tmp_path / "items.npz"
    found = opened(peers, "--v21", tmp_path / "out", "--arrays", archive, "--every", 32)
    assert (found["items"], found["episodes"]) == counts
    assert_same(version, archive)


@pytest.mark.slow
def test_a_v21_set_comes_back_item_by_item(peers: Path, shared_data: Path, tmp_path: Path) -> None:
    """Episodes 28 to 31 of a robot's AV1 recording: only their numbers are others."""
    source = tmp_path / "g1"
    source.mkdir()
    for name, there in (("data", "data"), ("videos", "videos"), ("meta", "meta-trimmed")):
        (source / name).symlink_to(shared_data / "lerobot-v2.1-g1-partial" / there)
    given_out(source, tmp_path)
    words = ("--source", source, "--episodes", 28, 29, 30, 31, "--v21", tmp_path / "out", "--every", 16)
    found = opened(peers, *words)["compared"]
    assert (found["items"], found["items_there"]) == (1043, 1043)
    assert (found["unlike"].keys(), found["absent"], found["more"]) == (PLACE, [], [])
    assert len(found["equal_keys"]) == 7
    files = [
        sorted(path.read_bytes() for path in folder.rglob("*.mp4")) for folder in (source / "videos", tmp_path / "out")
    ]
    assert files[0] == files[1] and len(files[0]) == 4


@pytest.mark.slow
def test_a_set_that_lerobot_recorded_comes_back(peers: Path, tmp_path: Path) -> None:
    """A camera of dtype `image` beside one of dtype `video`; values that benchmarks/peers/record.py seeds."""
    source = tmp_path / "source"
    said(peers, "record.py", source)
    version, archive = given_out(source, tmp_path), tmp_path / "items.npz"
    found = opened(peers, "--source", source, "--v21", tmp_path / "out", "--arrays", archive)["compared"]
    assert (found["items"], found["items_there"], len(found["equal_keys"])) == (12, 12, 10)
    assert (found["unlike"], found["absent"], found["more"]) == ({}, [], [])
    assert_same(version, archive)
    with np.load(archive) as seen:
        numbers = zip(seen["episode_index"], seen["frame_index"], strict=True)
        rngs = [np.random.default_rng((int(episode), int(frame))) for episode, frame in numbers]
        assert np.array_equal(seen["observation.state"], [rng.random(3, np.float32) for rng in rngs])
        assert np.array_equal(seen["action"], [rng.random(2, np.float32) for rng in rngs])
        stills = np.stack([rng.integers(0, 256, (48, 64, 3), np.uint8) for rng in rngs])
        assert np.array_equal(seen["observation.images.stills"], stills.transpose(0, 3, 1, 2))
