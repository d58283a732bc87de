"""Doctor looks into a data set as it looks into a source: what ingest would keep out today is found where it stands."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from data_lake.doctor import doctor
from data_lake.fitting import Kind
from data_lake.video import movie_box
from tests.data_lake.crashing_ingest import SPEC
from tests.data_lake.recordings import CAMERA, change_episodes, change_rows, write_lines, write_v2, write_v3
from tests.data_lake.seen import LENGTHS, ingest
from tests.data_lake.test_fitting import larger


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    return write_v2(tmp_path / "v2", LENGTHS)


def found(tmp_path: Path, *, deep: bool = False) -> list[dict[str, Any]]:
    answer = doctor("cart", lake=tmp_path / "lake", deep=deep)
    bad = {item["episode"] for item in answer["findings"] if item["severity"] == "error"}
    assert answer["episodes"] == {"in": 3, "ok": 3 - len(bad), "quarantined": len(bad)}
    return answer["findings"]


@pytest.mark.parametrize("value", [1e39, float("nan"), float("-inf")])
def test_a_value_that_is_not_finite(value: float, v2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    action = [[0.0, 0.0]] * 7 + [[0.0, value]] + [[0.0, 0.0]] * 4
    change_rows(v2 / "data/chunk-000/episode_000001.parquet", action=action)
    monkeypatch.setattr("data_lake.examine._check_rows", lambda *_: [])
    ingest(v2, tmp_path / "lake/datasets/cart")
    (item,) = found(tmp_path)
    assert (item["code"], item["episode"], item["row"]) == ("LAKE-016", 1, 7) and "action is [0.0, " in item["message"]


def test_words_that_are_no_instruction(v2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["push\0", "lift the cube", " "]
    write_lines(v2 / "meta/tasks.jsonl", [{"task_index": n, "task": word} for n, word in enumerate(words)])
    for number, word in enumerate(words):
        change_episodes(v2, number, tasks=[word])
        change_rows(v2 / f"data/chunk-000/episode_{number:06d}.parquet", task_index=[number] * LENGTHS[number])
    monkeypatch.setattr("data_lake.sources.instructions.fault", lambda _: None)
    ingest(v2, tmp_path / "lake/datasets/cart")
    items = found(tmp_path)
    assert [(item["code"], item["episode"]) for item in items] == [("LAKE-231", 0), ("LAKE-024", 2)]
    for item in items:
        assert f"./vlaloop relabel cart --episode {item['episode']} --instruction" in item["fix"]


def test_pictures_of_two_sizes(v2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    larger(v2, 1)
    monkeypatch.setattr(Kind, "admit", lambda *_: None)
    ingest(v2, tmp_path / "lake/datasets/cart")
    (item,) = found(tmp_path)
    assert (item["code"], item["episode"], item["camera"]) == ("LAKE-233", 1, CAMERA)
    assert "64 x 64, 32 x 32 in info.json" in item["message"]


def spoil(path: Path, share: float) -> None:
    """Zeroes in the packets at this share of the media data, the movie box left whole."""
    content = bytearray(path.read_bytes())
    with path.open("rb") as file:
        movie, _ = movie_box(file, len(content))
    begin = content.index(b"mdat") + 4
    end = movie if movie > begin else len(content)
    place = begin + int(share * (end - begin))
    content[place : place + 60] = bytes(60)
    path.write_bytes(content)


@pytest.mark.parametrize("copy", ["copy", "reference"])
def test_frames_that_do_not_decode_are_found_only_when_asked_for(copy: str, v2: Path, tmp_path: Path) -> None:
    v3 = write_v3(tmp_path / "v3", v2, LENGTHS)
    spoil(v3 / f"videos/{CAMERA}/chunk-000/file-000.mp4", 0.5)
    ingest(v3, tmp_path / "lake/datasets/cart", replace(SPEC, copy=copy))
    of_the_source = [item for item in doctor(str(v3), deep=True)["findings"] if item["code"] == "LAKE-153"]
    assert found(tmp_path) == []
    of_the_lake = found(tmp_path, deep=True)
    assert {item["code"] for item in of_the_lake} == {"LAKE-153"}
    named = ("episode", "camera", "row", "message")
    assert [[item[name] for name in named] for item in of_the_lake] == [
        [item[name] for name in named] for item in of_the_source
    ]
    assert all(item["file"] == "videos.lance row 0" for item in of_the_lake)


def test_a_sound_data_set_deeply(v2: Path, tmp_path: Path) -> None:
    ingest(v2, tmp_path / "lake/datasets/cart")
    assert found(tmp_path, deep=True) == []
