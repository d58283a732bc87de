"""What an HDF5 file says of itself: order, dialect, rate, words, masks, success; odd values cost nothing else."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_lake.sources.files import Unreadable, natural
from data_lake.sources.hdf5_layout import item_at, list_file, opened
from tests.data_lake.hdf5_recordings import (
    declare,
    isaac_arrays,
    libero_arrays,
    robomimic_arrays,
    shades,
    write_demo,
    write_isaac,
    write_libero,
    write_robomimic,
)


def test_demonstrations_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "demo.hdf5"
    for number in (10, 2, 0, 1):
        write_demo(path, f"demo_{number}", libero_arrays(3))
    assert [demo.number for demo in list_file(path).demos] == [0, 1, 2, 10]


@given(st.lists(st.integers(0, 9999), min_size=1, unique=True))
def test_files_in_natural_order(numbers: list[int]) -> None:
    paths = [Path(f"task_{number}_demo.hdf5") for number in numbers]
    assert sorted(paths, key=natural) == [Path(f"task_{number}_demo.hdf5") for number in sorted(numbers)]


def test_what_each_layout_says(tmp_path: Path) -> None:
    robomimic = list_file(write_robomimic(tmp_path / "a.hdf5"))
    libero = list_file(write_libero(tmp_path / "b.hdf5"))
    isaac = list_file(write_isaac(tmp_path / "c.hdf5", [True]))
    dialects = [file.dialect for file in (robomimic, libero, isaac)]
    assert dialects == ["robomimic", "libero", "isaaclab"]
    assert [file.rate_hz for file in (robomimic, libero, isaac)] == [20.0, 20.0, None]
    assert [file.is_robosuite for file in (robomimic, libero, isaac)] == [True, True, False]
    assert robomimic.state == ("obs/robot0_eef_pos", "obs/robot0_eef_quat", "obs/robot0_gripper_qpos")
    assert libero.state == ("obs/ee_states", "obs/gripper_states") and isaac.state == ()
    assert libero.views == {"agentview": "obs/agentview_rgb", "eye_in_hand": "obs/eye_in_hand_rgb"}
    assert (robomimic.views, isaac.views) == ({"agentview": "obs/agentview_image"}, {})
    assert (libero.demos[0].instruction, isaac.demos[0].instruction) == ("put the bowl on the stove", "")
    assert robomimic.robot == "Panda" and isaac.robot == ""


def test_a_second_arm_is_not_left_out_silently(tmp_path: Path) -> None:
    arrays = robomimic_arrays(4)
    write_demo(tmp_path / "two.hdf5", "demo_0", arrays | {"obs/robot1_eef_pos": arrays["obs/robot0_eef_pos"]})
    assert list_file(tmp_path / "two.hdf5").state == ()


@pytest.mark.parametrize(
    ("words", "expected"),
    [("open it ", "open it"), (["open", "the", "drawer"], "open the drawer"), (None, ""), (["open", 3], ""), ({}, "")],
)
def test_words_of_libero(words: Any, expected: str, tmp_path: Path) -> None:
    assert list_file(write_libero(tmp_path / "demo.hdf5", words=words)).demos[0].instruction == expected


def test_masks_success_and_seed_are_kept(tmp_path: Path) -> None:
    path = write_isaac(tmp_path / "demo.hdf5", [True, False, None])
    declare(path, masks={"train": ["demo_0", "demo_1"], "20_percent": ["demo_1"]})
    demos = list_file(path).demos
    assert [demo.extra for demo in demos] == [
        {"seed": 7, "success": True, "mask": "train"},
        {"seed": 8, "success": False, "mask": "20_percent,train"},
        {"seed": 9},
    ]
    assert [demo.failed for demo in demos] == [False, True, False]


@pytest.mark.parametrize(
    ("said", "failed"),
    [("True", False), ("success", False), (b"1", False), (1, False), ("False", True), ("no", True), ("0", True),
     (" false ", True), ("", True), ("unclear", True), (0, True)],
)  # fmt: skip
def test_success_in_words(said: Any, failed: bool, tmp_path: Path) -> None:
    """What is not clearly success is not trained on unasked."""
    write_demo(tmp_path / "demo.hdf5", "demo_0", isaac_arrays(3), success=said)
    assert list_file(tmp_path / "demo.hdf5").demos[0].failed is failed


def test_two_keys_of_one_view_keep_their_names(tmp_path: Path) -> None:
    arrays = libero_arrays(3)
    write_demo(tmp_path / "demo.hdf5", "demo_0", arrays | {"obs/agentview_image": arrays["obs/agentview_rgb"]})
    assert list(list_file(tmp_path / "demo.hdf5").views) == ["agentview_image", "agentview_rgb", "eye_in_hand_rgb"]


def test_what_most_demonstrations_hold_is_expected(tmp_path: Path) -> None:
    """Neither one that lacks a camera nor one that has another decides for all; of two, the fuller does."""
    path = write_libero(tmp_path / "two.hdf5", (3, 3))
    with h5py.File(path, "a") as file:
        del file["data/demo_0/obs"]
    assert list_file(path).state == ("obs/ee_states", "obs/gripper_states")
    path = write_libero(tmp_path / "four.hdf5", (3, 3, 3, 3))
    with h5py.File(path, "a") as file:
        del file["data/demo_0/obs/eye_in_hand_rgb"]
        file["data/demo_1/obs/third_rgb"] = shades(3)
    assert list(list_file(path).views) == ["agentview", "eye_in_hand"]


@pytest.mark.parametrize("value", ["", "{", "[1]", "null", "9" * 5000, '{"env_kwargs": 3}', 5, b"\xff", [1, 2]])
def test_odd_attributes_say_nothing(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "demo.hdf5"
    write_demo(path, "demo_0", isaac_arrays(3), ep_meta=value, num_samples=value, seed=value)
    declare(path, env_args=value, env_info=value, problem_info=value)
    file = list_file(path)
    assert file.unreadable is not None or (file.rate_hz, file.robot, file.demos[0].instruction) == (None, "", "")


@pytest.mark.parametrize("rate", [0, -5, True, "20", None, float("inf"), float("nan"), [20]])
def test_odd_rates_are_none(rate: Any, tmp_path: Path) -> None:
    path = write_robomimic(tmp_path / "demo.hdf5", env_args={"type": 1, "env_kwargs": {"control_freq": rate}})
    assert list_file(path).rate_hz is None


def test_what_is_no_demonstration_is_named(tmp_path: Path) -> None:
    path = write_libero(tmp_path / "demo.hdf5")
    write_demo(path, "demo_01", {"actions": np.zeros((2, 2))})
    with h5py.File(path, "a") as file:
        file["data/demo_7"] = 3
    file = list_file(path)
    assert [demo.name for demo in file.demos] == ["demo_0", "demo_1"]
    (said,) = file.findings
    assert (said.code, said.message.rpartition(": ")[2]) == ("LAKE-106", "demo_01, demo_7")


def test_files_that_hold_no_demonstration_say_what_they_hold(tmp_path: Path) -> None:
    """D18: an empty file, an empty `data` group, another layout, an interrupted recording, a pointer."""
    with h5py.File(tmp_path / "nothing.hdf5", "w"):
        pass
    declare(tmp_path / "empty.hdf5")
    with h5py.File(tmp_path / "aloha.hdf5", "w") as file:
        file["observations/qpos"], file["action"] = np.zeros((3, 14)), np.zeros((3, 14))
    (tmp_path / "short.hdf5").write_bytes((tmp_path / "nothing.hdf5").read_bytes()[:96])
    (tmp_path / "zero.hdf5").write_bytes(b"")
    (tmp_path / "pointer.hdf5").write_text("version https://git-lfs.github.com/spec/v1\n")
    (tmp_path / "annex.hdf5").symlink_to(tmp_path / "gone")
    found = {path.stem: list_file(path).unreadable for path in sorted(tmp_path.glob("*.hdf5"))}
    said = {name: (error.code, error.detail) for name, error in found.items() if error is not None}
    assert said["nothing"] == ("LAKE-101", "it holds nothing")
    assert said["empty"] == ("LAKE-101", "it holds data")
    assert said["aloha"] == ("LAKE-101", "it holds action, observations")
    assert said["short"][0] == said["zero"][0] == "LAKE-100" and "truncated" in said["short"][1]
    assert (said["pointer"][0], said["annex"][0]) == ("LAKE-008", "LAKE-009")


@given(data=st.data())
def test_an_interrupted_copy_is_named_wherever_it_ends(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sound = tmp_path_factory.getbasetemp() / "sound.hdf5"
    content = (sound if sound.exists() else write_isaac(sound, [True, False])).read_bytes()
    kept = data.draw(st.integers(0, len(content) - 1))
    short = tmp_path_factory.getbasetemp() / "short.hdf5"
    short.write_bytes(content[:kept])
    error = list_file(short).unreadable
    assert error is not None and error.code == "LAKE-100"


def test_trouble_while_reading_is_named(tmp_path: Path) -> None:
    path = write_libero(tmp_path / "demo.hdf5")
    with pytest.raises(Unreadable, match="LAKE-100"), opened(path) as file:
        _ = file["data/demo_9"]


def test_what_lies_in_another_file_is_not_read(tmp_path: Path) -> None:
    """Links and virtual data sets would bring in what no digest of the source covers."""
    other, path = write_libero(tmp_path / "other.hdf5"), tmp_path / "demo.hdf5"
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(24))
    with h5py.File(path, "w") as file:
        file["data/demo_0"] = h5py.ExternalLink("other.hdf5", "data/demo_0")
        file["raw/link"] = h5py.ExternalLink("other.hdf5", "data/demo_0/actions")
        file.create_dataset("raw/stored", (3,), "f8", external=[(str(secret), 0, 24)])
        layout = h5py.VirtualLayout((8, 7), "f8")
        layout[:] = h5py.VirtualSource(str(other), "data/demo_0/actions", (8, 7))
        file.create_virtual_dataset("raw/virtual", layout)
    error = list_file(path).unreadable
    assert error is not None and (error.code, error.detail) == ("LAKE-100", "/data/demo_0 lies in another file")
    with h5py.File(path) as file:
        for name in ("link", "stored", "virtual"):
            with pytest.raises(Unreadable, match="lies in another file"):
                item_at(file.require_group("raw"), name)
