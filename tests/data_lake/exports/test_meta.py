"""What a version says of itself when it is given out: LeRobot's words, and nothing in their place."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from data_lake.exports import publish_folder
from data_lake.published import publish_lance
from data_lake.specs import IngestSpec, ReadSpec
from tests.data_lake.exports.round_trip import FORMS, LENGTHS, given_out, taken_in
from tests.data_lake.recordings import (
    CAMERA,
    TASKS,
    change_episodes,
    change_info,
    write_v2,
    write_v3,
)


def test_metadata_are_as_lerobot_writes_them(tmp_path: Path) -> None:
    """Pains D04 and D05: boundaries tile the rows, and the rows within them carry the episode's number."""
    out = given_out(taken_in(write_v2(tmp_path / "source"), tmp_path / "lake"), tmp_path / "out", "v3.0")
    episodes = pq.read_table(out / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    rows = pq.read_table(out / "data/chunk-000/file-000.parquet")
    end = 0
    for episode in episodes:
        begin, end = end, end + episode["length"]
        assert (episode["dataset_from_index"], episode["dataset_to_index"]) == (begin, end)
        assert set(rows["episode_index"].to_pylist()[begin:end]) == {episode["episode_index"]}
    assert end == rows.num_rows == sum(LENGTHS)
    assert pq.ParquetFile(out / "data/chunk-000/file-000.parquet").num_row_groups == 3
    assert rows["observation.state"].type.list_size == 3
    tasks = pq.read_table(out / "meta/tasks.parquet")
    assert json.loads(tasks.schema.metadata[b"pandas"])["index_columns"] == ["task"]
    assert dict(zip(tasks["task"].to_pylist(), tasks["task_index"].to_pylist(), strict=True)) == {
        TASKS[0]: 0,
        TASKS[1]: 1,
    }
    assert [episode["tasks"] for episode in episodes] == [[TASKS[0]], [TASKS[1]], [TASKS[0]]]
    info = json.loads((out / "meta/info.json").read_text())
    assert "storage_format" not in info and info["codebase_version"] == "v3.0"


def test_sets_alike_in_shape_and_rate_declare_the_same_features(tmp_path: Path) -> None:
    """Pain D13: one source says `info` of its camera, the other `video_info`; both give out the same words."""
    declared = []
    for name, key in (("one", "info"), ("other", "video_info")):
        source = write_v2(tmp_path / name)
        info = json.loads((source / "meta/info.json").read_text())
        info["features"][CAMERA][key] = {"video.fps": 10.0}
        change_info(source, features=info["features"])
        out = given_out(taken_in(source, tmp_path / f"lake-{name}"), tmp_path / f"out-{name}", "v3.0")
        declared.append(json.loads((out / "meta/info.json").read_text())["features"])
    assert declared[0] == declared[1]


def test_what_the_source_said_beside_is_kept(tmp_path: Path) -> None:
    source = write_v3(tmp_path / "v3", write_v2(tmp_path / "v2"))
    first = taken_in(source, tmp_path / "lake")
    for form in FORMS:
        again = taken_in(given_out(first, tmp_path / form, form), tmp_path / f"again-{form}")
        assert [json.loads(row["extra"]) for row in again.episodes] == [{"seed": 100 + n} for n in range(3)]


def test_whatever_the_source_said_beside_is_given_out(tmp_path: Path) -> None:
    """Integers that no column holds, and of one name words here and numbers there: a table has them as text."""
    source = write_v2(tmp_path / "source")
    change_episodes(source, 0, serial=2**63, kind="a")
    change_episodes(source, 1, serial=2**200, kind=1)
    version = taken_in(source, tmp_path / "lake")
    for form in FORMS:
        again = taken_in(given_out(version, tmp_path / form, form), tmp_path / f"again-{form}")
        said = [json.loads(row["extra"]) for row in again.episodes[:2]]
        assert [str(each["serial"]) for each in said] == [str(2**63), str(2**200)]
        assert [str(each["kind"]) for each in said] == ["a", "1"]


RESERVED = ("dataset_from_index", "dataset_to_index", "data/chunk_index", f"videos/{CAMERA}/from_timestamp",
            "stats/action/max", "source", "content_hash", "extra")  # fmt: skip


def test_what_the_source_said_beside_takes_no_column_of_lerobot(tmp_path: Path) -> None:
    """As a converter from another data set leaves it: the column is what the lake knows, beside it what was said."""
    plain = taken_in(write_v2(tmp_path / "plain"), tmp_path / "plain-lake")
    source = write_v2(tmp_path / "source")
    for number in range(3):
        change_episodes(source, number, extra_source="here", **dict.fromkeys(RESERVED, 7000 + number))
    version = taken_in(source, tmp_path / "lake")
    kept = {"extra_source": "here"} | {f"extra_{name}": 7000 for name in RESERVED if name != "source"}
    kept |= {"extra_extra_source": 7000}
    file = "meta/episodes/chunk-000/file-000.parquet"
    for form in (*FORMS, "lance"):
        folders = [
            publish_lance(each)[0] if form == "lance" else given_out(each, tmp_path / f"{form}-{name}", form)
            for name, each in (("here", version), ("plain", plain))
        ]
        if form == "v2.1":
            lines = [(folder / "meta/episodes.jsonl").read_text().splitlines() for folder in folders]
            row, usual = (json.loads(each[0]) for each in lines)
        else:
            row, usual = (pq.read_table(folder / file).to_pylist()[0] for folder in folders)
        usual.pop("seed", None)
        row.pop("seed", None)
        assert row == usual | kept, form
        if form != "lance":
            again = taken_in(tmp_path / f"{form}-here", tmp_path / f"again-{form}")
            assert {
                name: value for name, value in json.loads(again.episodes[0]["extra"]).items() if name != "seed"
            } == kept


@pytest.mark.parametrize("form", FORMS)
def test_pictures_that_are_not_upright_rgb_are_said(form: str, tmp_path: Path) -> None:
    """Readers take them for RGB; our own reads what they are, without being told again."""
    spec = IngestSpec(dataset="cart", embodiment="cart", read=ReadSpec(colour_order="bgr"))
    version = taken_in(write_v2(tmp_path / "source"), tmp_path / "lake", spec)
    (found,) = publish_folder(version, tmp_path / "out", form)
    assert found.code == "LAKE-131" and "colour_order is bgr" in found.message
    again = taken_in(tmp_path / "out", tmp_path / "again")
    assert {json.loads(row["meaning"])["colour_order"] for row in again.episodes} == {"bgr"}
