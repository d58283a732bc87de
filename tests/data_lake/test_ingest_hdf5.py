"""HDF5 demonstrations through a whole ingest: what a policy would see, and what the pains of others would cost here."""

import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from data_lake.decode import frames
from data_lake.doctor import doctor
from data_lake.images import upright_rgb
from data_lake.ingested import Ingested
from data_lake.specs import GripperSpec, IngestSpec, ReadSpec
from data_lake.stored_videos import open_video
from data_lake.tables import open_table, read_manifest
from errors import UserError
from tests.data_lake.hdf5_recordings import (
    ROBOSUITE_ARGS,
    SIZE,
    declare,
    flat,
    motion,
    shades,
    write_demo,
    write_isaac,
    write_libero,
)
from tests.data_lake.seen import content, ingest

UPRIGHT = {"colour_order": "rgb", "image_orientation": "upright"}
ISAAC: dict[str, Any] = {"state": ("obs/eef_pos",), "fps": "30"}


def taken(source: Path, root: Path, **read: Any) -> Ingested:
    return ingest(source, root, IngestSpec(dataset="arm", embodiment="arm", read=ReadSpec(**read)))


def with_pictures(path: Path, *pictures: np.ndarray) -> Path:
    """A LIBERO-like file whose demonstrations show these (T, H, W, 3)."""
    for number, images in enumerate(pictures):
        count = len(images)
        arrays = {"actions": motion(count, 7, number), "obs/ee_states": motion(count, 6, number)}
        arrays |= {"obs/gripper_states": motion(count, 2, number), "obs/agentview_rgb": images}
        write_demo(path, f"demo_{number}", arrays, num_samples=count)
    return declare(path, env_args=ROBOSUITE_ARGS, problem_info={"language_instruction": "push the cube"})


def seen(root: Path, done: Ingested, episode: int = 0) -> np.ndarray:
    """(T, H, W, 3) of the view agentview, as preprocessing sees it: decoded from the lake, upright RGB."""
    manifest, entry, meaning = read_manifest(root), done.view["episodes"][episode], done.view["meaning"]
    assert manifest is not None
    videos, view = open_table(root, manifest, "videos"), entry["views"]["agentview"]
    key = (view["video_key"], view["chunk_index"], view["file_index"])
    with open_video(videos.uri, videos.version, *key) as file:
        shown = frames(
            file, from_s=view["from_s"], to_s=view["to_s"], fps=meaning["fps"], wanted=range(entry["length"])
        )
        images = [upright_rgb(image, meaning["colour_order"], meaning["image_orientation"]) for _, image in shown]
    return np.stack(images)


@pytest.mark.parametrize(("order", "pixel"), [("rgb", (255, 0, 0)), ("bgr", (0, 0, 255))])
def test_red_is_red_whatever_the_order(order: str, pixel: tuple[int, int, int], tmp_path: Path) -> None:
    """D15: pure red as each order writes it."""
    path = with_pictures(tmp_path / "source/demo.hdf5", flat(5, pixel))
    done = taken(path, tmp_path / "lake", colour_order=order, image_orientation="upright")
    assert np.array_equal(seen(tmp_path / "lake", done), flat(5, (255, 0, 0)))


@pytest.mark.parametrize(
    ("orientation", "corner"),
    [("upright", (0, 0)), ("upside_down", (SIZE - 1, SIZE - 1)), ("flipped", (SIZE - 1, 0))],
)
def test_a_bright_corner_ends_where_it_belongs(orientation: str, corner: tuple[int, int], tmp_path: Path) -> None:
    """D16: what is top left in the world is top left for the policy, wherever the recorder had it."""
    images = flat(4, (0, 0, 0))
    images[:, corner[0], corner[1]] = (250, 240, 30)
    path = with_pictures(tmp_path / "source/demo.hdf5", images)
    done = taken(path, tmp_path / "lake", image_orientation=orientation)
    expected = flat(4, (0, 0, 0))
    expected[:, 0, 0] = (250, 240, 30)
    assert np.array_equal(seen(tmp_path / "lake", done), expected)
    assert done.view["meaning"]["colour_order"] == "rgb", "robosuite settles it"


def test_which_way_is_up_is_asked_for(tmp_path: Path) -> None:
    """D16: the layout never settles it, not even where the file names a convention."""
    path = with_pictures(tmp_path / "source/demo.hdf5", shades(4))
    declare(path, macros_image_convention="opengl")
    with pytest.raises(UserError) as refused:
        taken(path, tmp_path / "lake")
    assert refused.value.code == "LAKE-035" and "ingest.read.image_orientation" in refused.value.next_step


def test_grippers_of_two_conventions_become_one(tmp_path: Path) -> None:
    """D17: the same motion written 0 to 1 and 1 to 0."""
    openness = np.linspace(0, 1, 10)
    contents = []
    for name, opened in (("one", 1.0), ("zero", 0.0)):
        gripper = openness if opened else 1 - openness
        arrays = {"actions": np.stack([np.arange(10), gripper], axis=1), "obs/qpos": gripper}
        path = tmp_path / f"{name}/demo.hdf5"
        write_demo(path, "demo_0", arrays, num_samples=10)
        grippers = (
            GripperSpec(column="action", dim=1, open=opened, closed=1 - opened),
            GripperSpec(column="state", dim=0, open=opened, closed=1 - opened),
        )
        read = {"state": ("obs/qpos",), "fps": "10", "grippers": grippers, "instruction": "=open it"}
        done = taken(path, tmp_path / f"lake-{name}", **read)
        assert done.findings == ()
        contents.append(content(tmp_path / f"lake-{name}")["frames"])
    for column in ("action", "observation_state"):
        np.testing.assert_allclose(contents[0][column], contents[1][column], atol=1e-6)
    assert contents[0]["observation_state"][0] == [0.0] and contents[0]["observation_state"][-1] == [1.0]


def files_under(*folders: Path) -> int:
    return sum(path.is_file() for folder in folders for path in folder.rglob("*"))


def test_files_do_not_grow_with_frames(tmp_path: Path) -> None:
    """D20: 300 pictures leave no more files than 20 do, but one that Lance keeps large blobs in."""
    counts = []
    for length in (4, 60):
        path = with_pictures(tmp_path / f"source-{length}/demo.hdf5", *(shades(length, seed) for seed in range(5)))
        before = files_under(tmp_path)
        done = taken(path, tmp_path / f"lake-{length}", **UPRIGHT)
        assert (done.num_episodes, done.num_frames) == (5, 5 * length)
        counts.append(files_under(tmp_path) - before)
    assert counts[1] - counts[0] <= 1 and counts[1] < 30


def test_a_short_demonstration_is_not_padded(tmp_path: Path) -> None:
    """D24: what a chunk needs beyond the end is the loss mask's business, never a row of the lake."""
    path = with_pictures(tmp_path / "source/demo.hdf5", shades(3), shades(4))
    done = taken(path, tmp_path / "lake", **UPRIGHT)
    assert [entry["length"] for entry in done.view["episodes"]] == [3, 4]
    assert content(tmp_path / "lake")["frames"]["frame_index"] == [0, 1, 2, 0, 1, 2, 3]


def test_other_dimensions_in_a_folder_stay_out(tmp_path: Path) -> None:
    """D14: a second robot among the files costs its own episodes, with file and column named."""
    write_libero(tmp_path / "source/a.hdf5", (4, 5))
    write_libero(tmp_path / "source/b.hdf5", (4,))
    with h5py.File(tmp_path / "source/b.hdf5", "a") as file:
        del file["data/demo_0/actions"]
        file["data/demo_0/actions"] = motion(4, 14)
    done = taken(tmp_path / "source", tmp_path / "lake", **UPRIGHT)
    assert (done.num_episodes, done.num_quarantined) == (2, 1)
    (error,) = (item for item in done.findings if item.severity == "error")
    assert (error.code, error.file, error.episode) == ("LAKE-019", "b.hdf5", 10_000)
    assert "action has 14 dimensions, declared 7" in error.message


def test_a_broken_file_costs_itself(tmp_path: Path) -> None:
    """D18: named in quarantine; its neighbours are ingested under their own numbers."""
    write_libero(tmp_path / "source/a.hdf5", (4, 5))
    write_libero(tmp_path / "source/b.hdf5", (6,))
    whole = (tmp_path / "source/a.hdf5").read_bytes()
    (tmp_path / "source/a.hdf5").write_bytes(whole[: len(whole) // 2])
    done = taken(tmp_path / "source", tmp_path / "lake", **UPRIGHT)
    assert [entry["source_episode"] for entry in done.view["episodes"]] == [10_000]
    assert [(item.code, item.file) for item in done.findings if item.severity == "error"] == [("LAKE-100", "a.hdf5")]


@pytest.mark.parametrize(("num_bytes", "code"), [(96, "LAKE-100"), (None, "LAKE-101")])
def test_an_empty_file_is_one_clear_error(num_bytes: int | None, code: str, tmp_path: Path) -> None:
    """D18: a recorder that never met its success condition leaves a file of 96 bytes, or an empty `data`."""
    path = declare(tmp_path / "source/demo.hdf5", env_args={"env_name": "Isaac-Lift", "type": 2}, total=0)
    path.write_bytes(path.read_bytes()[:num_bytes])
    with pytest.raises(UserError) as refused:
        taken(path, tmp_path / "lake")
    assert refused.value.code == "LAKE-001" and code in refused.value.message
    found = doctor(str(path))
    assert found["episodes"] == {"in": 1, "ok": 0, "quarantined": 1}
    assert [(item["code"], item["file"]) for item in found["findings"]] == [(code, "demo.hdf5")]


def test_a_demonstration_without_rows_is_said_once(tmp_path: Path) -> None:
    path = with_pictures(tmp_path / "source/demo.hdf5", shades(4), shades(0))
    done = taken(path, tmp_path / "lake", **UPRIGHT)
    assert [(item.code, item.episode) for item in done.findings if item.severity == "error"] == [("LAKE-020", 1)]


def test_where_all_failed_it_is_said(tmp_path: Path) -> None:
    """D18."""
    path = write_isaac(tmp_path / "source/demo.hdf5", [False, False])
    with pytest.raises(UserError) as refused:
        taken(path, tmp_path / "lake", **ISAAC)
    assert "LAKE-103" in refused.value.message and "only_success" in refused.value.next_step
    kept = taken(path, tmp_path / "lake", **ISAAC, only_success=False)
    assert [entry["extra"]["success"] for entry in kept.view["episodes"]] == [False, False]


def test_what_the_checks_find_in_rows_and_pictures(tmp_path: Path) -> None:
    path = with_pictures(tmp_path / "source/demo.hdf5", *(shades(4, seed) for seed in range(7)))
    with h5py.File(path, "a") as file:
        file["data/demo_1/actions"][2, 3] = np.nan
        file["data/demo_2"].attrs["num_samples"] = 9
        del file["data/demo_3/obs/agentview_rgb"]
        file["data/demo_3/obs/agentview_rgb"] = shades(3)
        del file["data/demo_5/obs/agentview_rgb"]
        file["data/demo_5/obs/agentview_rgb"] = shades(4).astype(np.float32)
        del file["data/demo_6/obs/agentview_rgb"]
    done = taken(path, tmp_path / "lake", **UPRIGHT)
    errors = {item.episode: item.code for item in done.findings if item.severity == "error"}
    assert errors == {1: "LAKE-016", 2: "LAKE-012", 3: "LAKE-011", 5: "LAKE-031"}
    assert done.num_quarantined == 5, "those without readable pictures are folded into one finding"
    assert np.array_equal(seen(tmp_path / "lake", done, 1), shades(4, 4)), "to the last bit"


ODD: dict[str, Any] = {
    "scalar": 3.0, "text": "x", "texts": ["a"] * 4, "nothing": h5py.Empty("f8"), "none": np.zeros((0,)),
    "struct": np.zeros(4, [("a", "f4")]), "complex": np.zeros((4, 2), complex), "cube": np.zeros((4, 2, 2)),
    "short": np.zeros((2, 6)), "wide": np.zeros((4, 9)), "opaque": np.void(b"abc"),
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("place", ["", "/actions", "/obs", "/obs/ee_states", "/obs/agentview_rgb"])
def test_an_odd_value_costs_one_demonstration(place: str, odd: str, tmp_path: Path) -> None:
    path = with_pictures(tmp_path / "demo.hdf5", *(shades(4, seed) for seed in range(3)))
    with h5py.File(path, "a") as file:
        del file[f"data/demo_1{place}"]
        file[f"data/demo_1{place}"] = ODD[odd]
    found = doctor(str(path))
    assert found["episodes"]["ok"] == 2
    assert {item["code"] for item in found["findings"]} & {
        "LAKE-019",
        "LAKE-031",
        "LAKE-102",
        "LAKE-106",
        "LAKE-108",
        "LAKE-109",
    }


def test_views_that_are_not_there_are_named(tmp_path: Path) -> None:
    path = with_pictures(tmp_path / "source/demo.hdf5", shades(4))
    with pytest.raises(UserError, match="there is no .*demo_0/obs/wrist"):
        taken(path, tmp_path / "lake", views={"wrist": "obs/wrist"}, **UPRIGHT)


def test_ingesting_again_adds_nothing(tmp_path: Path) -> None:
    write_libero(tmp_path / "source/a.hdf5", (4, 5))
    first = taken(tmp_path / "source", tmp_path / "lake", **UPRIGHT)
    again = taken(tmp_path / "source", tmp_path / "lake", **UPRIGHT)
    assert (first.num_new, again.num_new, again.fingerprint) == (2, 0, first.fingerprint)


def test_a_recorded_robosuite_demonstration(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "hdf5-robosuite-wipe-panda/demo.hdf5"
    for read, missing in (({}, "state"), ({"state": ("joint_torques",)}, "fps")):
        with pytest.raises(UserError) as refused:
            taken(path, tmp_path / "lake", **read)
        assert refused.value.code == "LAKE-035" and f"ingest.read.{missing}" in refused.value.next_step
    done = taken(path, tmp_path / "lake", state=("joint_torques",), fps="20")
    assert (done.num_episodes, done.num_quarantined, done.num_frames) == (1, 0, 174)
    (entry,) = done.view["episodes"]
    assert (entry["source_episode"], entry["extra"]) == (1, {"demo": "demo_1", "file": "demo.hdf5"})
    with h5py.File(path) as file:
        actions, torques = file["data/demo_1/actions"][()], file["data/demo_1/joint_torques"][()]
    rows = content(tmp_path / "lake")["frames"]
    assert np.array_equal(rows["action"], actions.astype(np.float32)) and actions.shape == (174, 6)
    assert np.array_equal(rows["observation_state"], torques.astype(np.float32))


def test_a_file_put_in_between_is_all_that_comes_in(tmp_path: Path) -> None:
    """Files are numbered by their place; renamed, removed and doubled ones are told from new ones by content."""
    source, root = tmp_path / "source", tmp_path / "lake"
    for number, name in enumerate("bd"):
        with_pictures(source / f"{name}.hdf5", shades(4, number), shades(5, 10 + number))
    first = taken(source, root, **UPRIGHT)
    with_pictures(source / "c.hdf5", shades(6, 20))
    second = taken(source, root, **UPRIGHT)
    assert (first.num_new, second.num_new, len(second.view["episodes"])) == (4, 1, 5)
    assert [each["length"] for each in second.view["episodes"]] == [4, 5, 6, 4, 5], "in the folder's order"
    assert len({each["episode_index"] for each in second.view["episodes"]}) == 5
    (source / "b.hdf5").rename(source / "e.hdf5")
    (source / "c.hdf5").unlink()
    third = taken(source, root, **UPRIGHT)
    assert (third.num_new, [each["length"] for each in third.view["episodes"]]) == (0, [4, 5, 4, 5])
    assert third.view["version"] == second.view["version"]
    shutil.copy(source / "e.hdf5", source / "a.hdf5")
    assert taken(source, root, **UPRIGHT).num_new == 2, "a demonstration that is there twice counts twice"
    assert taken(source, root, **UPRIGHT).num_new == 0
