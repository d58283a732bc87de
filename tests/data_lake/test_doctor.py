"""Doctor says what ingest would do, and finds what is wrong with a data set that was sound."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from data_lake.doctor import doctor
from data_lake.files import replace
from data_lake.ingest import ingest_source
from data_lake.integrity import digests
from data_lake.schema import META
from data_lake.specs import ReadSpec
from data_lake.tables import manifest_path, read_manifest, read_meta
from data_lake.writer import _commit, _write
from errors import UserError
from tests.data_lake.crashing_ingest import SPEC
from tests.data_lake.hdf5_recordings import write_robomimic
from tests.data_lake.recordings import change_episodes, change_info, write_v2

KEYS = {"code", "severity", "episode", "camera", "row", "file", "message", "fix"}


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    return write_v2(tmp_path / "v2")


@pytest.fixture
def lake(v2: Path, tmp_path: Path) -> Path:
    root = tmp_path / "lake/datasets/cart"
    ingest_source(v2, SPEC, dataset_root=root, out_dir=tmp_path / "out")
    return tmp_path / "lake"


def codes(answer: dict[str, Any]) -> list[str]:
    return [item["code"] for item in answer["findings"]]


def test_a_sound_source(v2: Path) -> None:
    change_info(v2, total_videos=1)
    answer = doctor(str(v2))
    assert answer.keys() == {"source", "format", "version", "episodes", "tasks", "findings"}
    assert (answer["source"], answer["format"], answer["version"]) == (str(v2), "lerobot", "v2.1")
    assert answer["episodes"] == {"in": 3, "ok": 3, "quarantined": 0}
    assert answer["tasks"] == {"push the cube": 2, "lift the cube": 1}
    assert codes(answer) == ["LAKE-041", "LAKE-052", "LAKE-143"]
    assert all(item.keys() == KEYS for item in answer["findings"])
    assert json.loads(json.dumps(answer)) == answer


def test_it_agrees_with_ingest(v2: Path, tmp_path: Path) -> None:
    change_episodes(v2, 1, length=3)
    (v2 / "data/chunk-000/episode_000000.parquet").unlink()
    answer = doctor(str(v2))
    done = ingest_source(v2, SPEC, dataset_root=tmp_path / "cart", out_dir=tmp_path / "out")
    assert answer["episodes"] == {"in": 3, "ok": done.num_episodes, "quarantined": done.num_quarantined}
    assert answer["findings"] == [item.as_json() for item in done.findings]


def test_many_findings_of_a_kind_are_one(tmp_path: Path) -> None:
    """D01: two hundred episodes whose lengths are wrong, one finding that names the first."""
    v2 = write_v2(tmp_path / "many", [2] * 20, cameras=())
    for number in range(20):
        change_episodes(v2, number, length=3)
    found = [item for item in doctor(str(v2))["findings"] if item["code"] == "LAKE-012"]
    assert [(item["episode"], item["file"]) for item in found] == [(0, "data/chunk-000/episode_000000.parquet")]
    assert found[0]["message"].endswith("3 declared, 2 found (and in 19 more episodes)")


def test_unreadable_metadata_are_a_finding(v2: Path) -> None:
    (v2 / "meta/info.json").write_text("{")
    answer = doctor(str(v2))
    assert answer["episodes"] == {"in": 0, "ok": 0, "quarantined": 0}
    assert codes(answer) == ["LAKE-004"] and answer["findings"][0]["severity"] == "error"


def test_what_ingest_would_ask_is_a_finding(tmp_path: Path) -> None:
    """Before anything is ingested, and as ingest asks: first what it takes to open the source."""
    source = write_robomimic(tmp_path / "demo.hdf5", (6, 7), env_args={"type": 1})
    for read, field in ((ReadSpec(), "fps"), (ReadSpec(fps=20), "image_orientation")):
        (asked,) = [item for item in doctor(str(source), read)["findings"] if item["severity"] == "error"]
        assert asked["code"] == "LAKE-035" and f"ingest.read.{field}" in asked["fix"]
        assert doctor(str(source), read)["format"] == "hdf5"
    answered = doctor(str(source), ReadSpec(fps=20, image_orientation="flipped"))
    assert answered["episodes"] == {"in": 2, "ok": 2, "quarantined": 0} and answered["findings"] == []


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        doctor(str(tmp_path / "nowhere"), lake=tmp_path)
    assert error.value.code == "LAKE-002"


@pytest.mark.parametrize("by", ["name", "path"])
def test_a_sound_data_set(by: str, lake: Path) -> None:
    source = "cart" if by == "name" else str(lake / "datasets/cart")
    answer = doctor(source, lake=lake)
    assert (answer["format"], answer["version"], answer["findings"]) == ("lake", "1", [])
    assert answer["episodes"] == {"in": 3, "ok": 3, "quarantined": 0}


def flip_video(root: Path) -> None:
    """One byte of the stored videos, in their middle (small blobs lie inside the data file)."""
    path = max((root / "videos.lance/data").rglob("*"), key=lambda file: file.stat().st_size)
    content = bytearray(path.read_bytes())
    place = content.find(b"mdat") + 40
    content[place] ^= 0xFF
    path.write_bytes(content)


def change_manifest(root: Path, **values: Any) -> None:
    manifest = read_manifest(root, 1)
    assert manifest is not None
    replace(manifest_path(root, 1), changed(manifest, **values).as_bytes())


def change_meta(root: Path, old: bytes, new: bytes) -> None:
    """Put other bytes for a meta file, as a foreign tool might."""
    manifest = read_manifest(root)
    assert manifest is not None
    files = {name: new if content == old else content for name, content in read_meta(root, manifest).items()}
    table = pa.table({"path": list(files), "data": pa.array(list(files.values()), pa.large_binary())}, schema=META)
    version = _commit(root / "meta.lance", META, _write(root / "meta.lance", table))
    vector = manifest.vector | {"meta": version}
    change_manifest(root, vector=vector, files=digests(root, vector, {}))


def flip_video_unseen(root: Path) -> None:
    """As a foreign tool might, that makes a manifest of what it wrote."""
    manifest = read_manifest(root)
    assert manifest is not None
    flip_video(root)
    change_manifest(root, files=digests(root, manifest.vector, {}))


def move_episode(root: Path) -> None:
    change_episode(root, "dataset_from_index", 1)


def lose_video(root: Path) -> None:
    change_episode(root, "videos/observation.images.front/file_index", 77)


def change_episode(root: Path, column: str, value: int) -> None:
    from data_lake import lake_meta

    manifest = read_manifest(root)
    assert manifest is not None
    old = read_meta(root, manifest)[lake_meta.EPISODES]
    columns = lake_meta.read_table(old).to_pydict()
    columns[column][1] = value
    change_meta(root, old, lake_meta.parquet_bytes(pa.table(columns)))


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (flip_video, "LAKE-076"),
        (flip_video_unseen, "LAKE-073"),
        (lambda root: change_manifest(root, num_frames=31), "LAKE-070"),
        (lambda root: change_manifest(root, num_videos=2), "LAKE-070"),
        (lambda root: change_manifest(root, vector={"frames": 9, "videos": 2, "meta": 2}), "LAKE-074"),
        (lambda root: manifest_path(root, 1).write_text("{"), "LAKE-074"),
        (lambda root: shutil.rmtree(root / "videos.lance"), "LAKE-076"),
        (move_episode, "LAKE-071"),
        (lose_video, "LAKE-072"),
    ],
)
def test_a_spoiled_data_set(spoil: Callable[[Path], Any], code: str, lake: Path) -> None:
    spoil(lake / "datasets/cart")
    answer = doctor("cart", lake=lake)
    assert code in codes(answer)
    assert next(item for item in answer["findings"] if item["code"] == code)["severity"] == "error"
    assert answer["episodes"]["ok"] < 3


def test_gr1_as_it_came(shared_data: Path) -> None:
    answer = doctor(os.fspath(shared_data / "lerobot-v2.0-gr1-picknplace"))
    assert (answer["version"], answer["episodes"]["ok"]) == ("v2.0", 5)
    assert {f"LAKE-{number:03d}" for number in range(41, 53)} == set(codes(answer))


def test_a_recording_without_its_data(shared_data: Path) -> None:
    answer = doctor(os.fspath(shared_data / "lerobot-v2.1-g1-partial"))
    assert answer["episodes"] == {"in": 100, "ok": 4, "quarantined": 96}
    assert codes(answer)[:2] == ["LAKE-010", "LAKE-009"], "of 96 and 93 episodes"
    assert "(and in 95 more episodes)" in answer["findings"][0]["message"]
    assert "(and in 92 more episodes)" in answer["findings"][1]["message"]
