"""Ingest from end to end: what enters, what does not, once, whatever crashes and whoever else writes."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from data_lake.tables import versions
from errors import UserError
from tests.data_lake.crashing_ingest import SPEC
from tests.data_lake.recordings import (
    CAMERA,
    TASKS,
    change_info,
    change_rows,
    write_v2,
    write_v3,
)
from tests.data_lake.seen import LENGTHS, content, ingest


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    return write_v2(tmp_path / "v2", LENGTHS)


def test_the_view_and_the_tables(v2: Path, tmp_path: Path) -> None:
    root = tmp_path / "cart"
    done = ingest(v2, root)
    assert (done.num_episodes, done.num_quarantined, done.num_frames, done.num_new) == (3, 0, 30, 3)
    view = json.loads((tmp_path / "cart-out/episodes.json").read_text())
    assert view == done.view
    assert [(each["from_index"], each["to_index"]) for each in view["episodes"]] == [(0, 8), (8, 20), (20, 30)]
    assert view["episodes"][1]["instruction"] == TASKS[1]
    assert view["episodes"][1]["views"] == {
        "front": {"video_key": CAMERA, "chunk_index": 0, "file_index": 1, "from_s": 0.0, "to_s": 1.2}
    }
    assert view["meaning"]["fps"] == 10.0 and view["meaning"]["colour_order"] == "rgb"
    seen = content(root)
    assert seen["frames"]["index"] == list(range(30))
    assert seen["frames"]["frame_index"][8:10] == [0, 1]
    assert seen["info"]["storage_format"] == "lance" and seen["info"]["total_frames"] == 30
    assert seen["stats"]["observation.state"]["max"] == [5.5, 2.0, 1.0]
    assert seen["stats"]["observation.state"]["count"] == [30]
    assert seen["episodes"]["content_hash"] == [each["content_hash"] for each in view["episodes"]]


def test_again_changes_nothing(v2: Path, tmp_path: Path) -> None:
    root = tmp_path / "cart"
    first = ingest(v2, root)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    for _ in range(2):
        again = ingest(v2, root)
        assert (again.num_new, again.view, again.fingerprint) == (0, first.view, first.fingerprint)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_a_longer_source_appends_only_what_is_new(tmp_path: Path) -> None:
    root = tmp_path / "cart"
    first = ingest(write_v2(tmp_path / "a", LENGTHS[:2]), root)
    second = ingest(write_v2(tmp_path / "b", LENGTHS), root)
    assert (second.num_new, second.num_episodes, versions(root)) == (1, 3, [1, 2])
    assert second.view["episodes"][:2] == first.view["episodes"]
    assert content(root, 1)["frames"]["index"] == list(range(20))
    whole = tmp_path / "whole"
    ingest(tmp_path / "b", whole)
    steps, once = content(root), content(whole)
    assert steps.pop("stats")["action"]["std"] == pytest.approx(once.pop("stats")["action"]["std"])
    assert steps == once, "in two steps or in one"


def test_versions_of_the_format_are_the_same_episodes(v2: Path, tmp_path: Path) -> None:
    v3 = write_v3(tmp_path / "v3", v2, LENGTHS)
    one, other = ingest(v2, tmp_path / "one"), ingest(v3, tmp_path / "other")
    hashes = [[each["content_hash"] for each in done.view["episodes"]] for done in (one, other)]
    assert hashes[0] == hashes[1] and one.fingerprint == other.fingerprint
    assert content(tmp_path / "other")["counts"] == (3, 30, 1), "a joint mp4 is stored once"
    assert (
        other.view["episodes"][2]["views"]["front"] | {"from_s": 2.0, "to_s": 3.0}
        == (other.view["episodes"][2]["views"]["front"])
    )
    assert ingest(v3, tmp_path / "one").num_new == 0


def test_a_missing_view_is_no_defect(tmp_path: Path) -> None:
    second = "observation.images.wrist"
    v2 = write_v2(tmp_path / "v2", LENGTHS, (CAMERA, second))
    v3 = write_v3(tmp_path / "v3", v2, LENGTHS, (CAMERA, second), without=[(1, second)])
    done = ingest(v3, tmp_path / "cart")
    assert [sorted(each["views"]) for each in done.view["episodes"]] == [
        ["front", "wrist"],
        ["front"],
        ["front", "wrist"],
    ]
    assert done.view["episodes"][0]["extra"] == {"seed": 100}
    again = ingest(v3, tmp_path / "cart")
    assert again.view == done.view and again.num_new == 0


def test_nothing_sound_is_an_error_and_leaves_nothing(v2: Path, tmp_path: Path) -> None:
    shutil.rmtree(v2 / "data")
    with pytest.raises(UserError) as error:
        ingest(v2, tmp_path / "cart")
    assert error.value.code == "LAKE-001" and "in 3 = ok 0 + quarantined 3" in error.value.done
    assert not (tmp_path / "cart").exists()


def test_another_kind_of_frames_is_refused(v2: Path, tmp_path: Path) -> None:
    root = tmp_path / "cart"
    ingest(v2, root)
    other = write_v2(tmp_path / "other", LENGTHS)
    for number, length in enumerate(LENGTHS):
        change_rows(other / f"data/chunk-000/episode_{number:06d}.parquet", next__reward=[0.5] * length)
    features = json.loads((other / "meta/info.json").read_text())["features"]
    change_info(other, features=features | {"next.reward": {"dtype": "float64", "shape": [1], "names": None}})
    with pytest.raises(UserError, match="next.reward") as error:
        ingest(other, root)
    assert error.value.code == "LAKE-006" and versions(root) == [1]


def test_what_the_recorder_declares_goes_before_the_recipe(v2: Path, tmp_path: Path) -> None:
    declared = {"embodiment": "cart", "render_every": 4, "colour_order": "bgr"}
    v3 = write_v3(tmp_path / "v3", v2, LENGTHS, declared=declared)
    done = ingest(v3, tmp_path / "cart")
    assert (done.view["meaning"]["render_every"], done.view["meaning"]["colour_order"]) == (4, "bgr")
    assert done.fingerprint != ingest(v2, tmp_path / "plain").fingerprint, "the same pixels with another meaning"
    with pytest.raises(UserError) as error:
        ingest(v3, tmp_path / "cart", replace(SPEC, embodiment="crane"))
    assert error.value.code == "LAKE-005"


def test_dimensions_must_be_the_embodiments(v2: Path, tmp_path: Path) -> None:
    ingest(v2, tmp_path / "fits", dims=(3, 2))
    with pytest.raises(UserError, match="3 state and 2 action") as error:
        ingest(v2, tmp_path / "cart", dims=(44, 44))
    assert error.value.code == "LAKE-005" and not (tmp_path / "cart").exists()


def test_it_can_be_stopped_between_episodes(v2: Path, tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    seen: list[int] = []

    def check() -> None:
        if len(seen) == 2:
            raise Stopped

    with pytest.raises(Stopped):
        ingest(v2, tmp_path / "cart", check=check, on_progress=lambda number, total, figures: seen.append(number))
    assert seen == [1, 2] and not (tmp_path / "cart/manifests").exists()


def test_a_source_that_changes_meanwhile_is_not_committed(v2: Path, tmp_path: Path) -> None:
    def unchanged() -> None:
        raise UserError("LAKE-003", "changed")

    with pytest.raises(UserError, match="LAKE-003"):
        ingest(v2, tmp_path / "cart", unchanged=unchanged)
    assert not (tmp_path / "cart/manifests").exists()


def test_cosmetic_metadata_do_not_keep_sources_apart(v2: Path, tmp_path: Path) -> None:
    """D13: one copy has `video_info` and other names; both mean the same."""
    root = tmp_path / "cart"
    ingest(v2, root)
    other = write_v2(tmp_path / "other", (5,))
    info = json.loads((other / "meta/info.json").read_text())
    info["features"][CAMERA]["video_info"] = {"video.fps": 10.0}
    info["features"]["observation.state"]["names"] = {"axes": ["x", "y", "z"]}
    info["features"]["timestamp"]["fps"] = 10.0
    (other / "meta/info.json").write_text(json.dumps(info))
    assert ingest(other, root).num_new == 1
    features = content(root)["info"]["features"]
    assert features["observation.state"]["names"] == ["x", "y", "z"]


def test_what_is_read_is_what_its_snapshot_holds(tmp_path: Path) -> None:
    """Data behind a linked folder, and under a hidden one, are vouched for; under one that no snapshot looks at, they
    are refused."""
    source = write_v2(tmp_path / "source")
    shutil.move(source / "data", tmp_path / "big")
    (source / "data").symlink_to(tmp_path / "big")
    info = json.loads((source / "meta/info.json").read_text())
    assert ingest(source, tmp_path / "cart").num_episodes == 3
    for folder in (".data", ".cache"):
        (source / folder).symlink_to(tmp_path / "big")
        said = info | {"data_path": info["data_path"].replace("data/", f"{folder}/")}
        (source / "meta/info.json").write_text(json.dumps(said))
        if folder == ".data":
            assert ingest(source, tmp_path / "cart").num_new == 0
        else:
            with pytest.raises(UserError, match=r"(?s)LAKE-241.*\.cache/chunk-000/episode_000000\.parquet"):
                ingest(source, tmp_path / "cart")
