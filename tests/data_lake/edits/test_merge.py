"""Merging: what means the same becomes one, each recording once, with its statistics exact and its origin kept."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from data_lake import lake_meta
from data_lake.doctor import doctor
from data_lake.edits.edit import Edited
from data_lake.edits.merge import merge
from data_lake.edits.relabel import relabel
from data_lake.files import tree
from data_lake.tables import dataset_root, read_manifest, read_meta, versions
from data_lake.version import open_version
from errors import UserError
from tests.data_lake.recordings import CAMERA, FPS, rows_of, write_v2
from tests.data_lake.seen import content, ingest


def other_rows(episode: int, length: int, first: int) -> pa.Table:
    """Of another recording: the numbers are larger."""
    table = rows_of(episode, length, first)
    state = table["observation.state"].combine_chunks()
    moved = pa.FixedSizeListArray.from_arrays(pa.array(state.flatten().to_numpy() + np.float32(50)), 3)
    return table.set_column(table.column_names.index("observation.state"), "observation.state", moved)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """`left` of three episodes; `right` of the first two of them, and four of another source."""
    root = tmp_path / "lake/datasets"
    ingest(write_v2(tmp_path / "kitchen", (8, 12, 10)), root / "left")
    ingest(write_v2(tmp_path / "again", (8, 12)), root / "right")
    ingest(write_v2(tmp_path / "garage", (6, 7, 9, 5), rows=other_rows), root / "right")
    return tmp_path / "lake"


def together(lake: Path, *names: str, into: str = "both") -> Edited:
    return merge(lake, names, into, who="ada")


def origins(lake: Path, named: str) -> list[tuple[str, int]]:
    return [(row["source"], row["source_episode"]) for row in open_version(lake, named).episodes]


def test_each_recording_once_with_its_origin(lake: Path) -> None:
    made = together(lake, "left", "right@2")
    assert (made.version, made.told) == (1, {"from": ["left@1", "right@2"], "num_episodes": 7, "repeated": 2})
    assert origins(lake, "both") == [("kitchen", n) for n in range(3)] + [("garage", n) for n in range(4)]
    assert doctor("both", lake=lake)["episodes"] == {"in": 7, "ok": 7, "quarantined": 0}
    assert {each["code"] for each in doctor("both", lake=lake)["findings"]} == {"LAKE-148"}


def test_it_is_as_if_both_had_been_ingested(lake: Path, tmp_path: Path) -> None:
    """Rows, videos, tasks, statistics and counts are those of a data set into which the folders came one by one."""
    together(lake, "left", "right")
    root = tmp_path / "other/datasets/both"
    for name in ("kitchen", "garage"):
        ingest(tmp_path / name, root)
    found, wanted = content(dataset_root(lake, "both")), content(root)
    for name in wanted:
        if name != "stats":
            assert found[name] == wanted[name], name
    for key, stats in wanted["stats"].items():
        for name, values in stats.items():
            assert found["stats"][key][name] == pytest.approx(values, rel=1e-12), (key, name)


def test_statistics_are_those_of_the_rows(lake: Path) -> None:
    """Also where a recording was left out, which the statistics of its data set had counted."""
    together(lake, "left", "right")
    version = open_version(lake, "both")
    rows_TD = np.stack(version.table("frames").to_table()["observation_state"].to_numpy()).astype(np.float64)
    stats = json.loads(read_meta(version.root, version.manifest)[lake_meta.STATS])["observation.state"]
    assert stats["count"] == [len(rows_TD)] == [30 + 27]
    np.testing.assert_allclose(stats["mean"], rows_TD.mean(axis=0))
    np.testing.assert_allclose(stats["std"], rows_TD.std(axis=0))
    np.testing.assert_allclose(stats["max"], rows_TD.max(axis=0))


def test_into_one_that_is_there(lake: Path) -> None:
    before = content(dataset_root(lake, "left"))
    assert together(lake, "left", "right", into="left").told["num_episodes"] == 4
    assert content(dataset_root(lake, "left"), 1) == before
    assert open_version(lake, "left").manifest.num_frames == 57
    manifest = read_manifest(dataset_root(lake, "left"))
    assert manifest is not None and manifest.edit is not None
    assert manifest.edit["merge"]["from"] == ["left@1", "right@2"] and manifest.edit["by"] == "ada"
    again = together(lake, "right", into="left")
    assert (again.is_new, again.version, again.told["repeated"]) == (False, 2, 6)


def test_videos_of_one_content_are_stored_once(lake: Path) -> None:
    """The four of the garage look like those of the kitchen, as far as those are as long."""
    together(lake, "left", "right")
    videos = open_version(lake, "both").table("videos").to_table(columns=["blake3"])["blake3"].to_pylist()
    assert len(videos) == len(set(videos)) == 7


def test_a_relabelled_recording_is_the_same_one(lake: Path, tmp_path: Path) -> None:
    """What is there keeps its words, and what was left out for it is told by number."""
    relabel(lake, "right", [("0,3", "wait")], who="ada")
    made = together(lake, "left", "right")
    assert (made.told["num_episodes"], made.told["repeated"]) == (7, 2)
    assert made.told["reworded"] == [{"from": "right@3", "episode_index": 0, "kept": 0}]
    kept = open_version(lake, "both").episodes
    assert [kept[0]["instruction"], kept[4]["instruction"]] == [
        open_version(lake, "left").episodes[0]["instruction"],
        "wait",
    ]
    again = together(lake, "right", into="both")
    assert (again.is_new, again.told["repeated"], len(again.told["reworded"])) == (False, 6, 1)
    assert ingest(tmp_path / "kitchen", dataset_root(lake, "both")).num_new == 0


def test_cosmetics_are_no_difference(lake: Path, tmp_path: Path) -> None:
    """`video_info`, names that one alone gives, a robot of another name: nothing that rows mean."""
    garage = write_v2(tmp_path / "named", (4,), rows=other_rows)

    path = garage / "meta/info.json"
    info = json.loads(path.read_text())
    info["features"]["observation.state"]["names"] = {"motors": ["x", "y", "z"]}
    info["features"]["action"]["names"] = None
    info["features"][CAMERA]["video_info"] = {"video.fps": FPS}
    path.write_text(json.dumps(info | {"robot_type": "wagon"}))
    ingest(garage, dataset_root(lake, "dressed"))
    assert together(lake, "dressed", "left").told["num_episodes"] == 4
    features = open_version(lake, "both").info["features"]
    assert features["action"]["names"] == ["dx", "dy"], "what one says is kept"


def test_real_differences_are_all_named(lake: Path, tmp_path: Path) -> None:
    def wider(episode: int, length: int, first: int) -> pa.Table:
        table = rows_of(episode, length, first)
        action = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(length * 4, np.float32)), 4)
        place = table.column_names.index("action")
        return table.set_column(place, "action", action).append_column("reward", pa.array(np.zeros(length, np.float32)))

    folder = write_v2(tmp_path / "wide", (6,), rows=wider)

    path = folder / "meta/info.json"
    info = json.loads(path.read_text())
    info["features"]["action"] |= {"shape": [4], "names": ["a", "b", "c", "d"]}
    info["features"]["observation.state"]["names"] = ["z", "y", "x"]
    info["features"]["reward"] = {"dtype": "float32", "shape": [1], "names": None}
    path.write_text(json.dumps(info))
    ingest(folder, dataset_root(lake, "wide"))
    files = list(tree(lake))
    with pytest.raises(UserError) as refused:
        together(lake, "left", "right", "wide")
    assert refused.value.code == "LAKE-180" and "left@1, right@2, wide@1" in refused.value.where
    for words in ("action shape ([2] in left@1, [4] in wide@1)", "action names", "observation.state names", "reward ("):
        assert words in refused.value.message
    assert "right@2" not in refused.value.message
    assert [path for path in tree(lake) if path not in files] == [] and versions(dataset_root(lake, "both")) == []


def test_no_such_data_set(lake: Path) -> None:
    with pytest.raises(UserError) as refused:
        together(lake, "left", "nothing")
    assert refused.value.code == "LAKE-002"
