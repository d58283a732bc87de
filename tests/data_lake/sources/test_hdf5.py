"""HDF5 demonstrations as a source: one file or a folder of them, what is asked for, what is left out."""

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from data_lake.schema import vectors
from data_lake.sources.episode import Episode, Pictures
from data_lake.sources.hdf5 import Hdf5Demonstrations
from data_lake.specs import AS_THE_SOURCE_SAYS, ReadSpec
from errors import UserError
from tests.data_lake.hdf5_recordings import (
    ROBOSUITE_ARGS,
    declare,
    libero_arrays,
    motion,
    robomimic_arrays,
    shades,
    write_demo,
    write_isaac,
    write_libero,
    write_robomimic,
)

ISAAC = ReadSpec(state=("obs/eef_pos", "obs/gripper_pos"), fps="30")


def read(path: Path, spec: ReadSpec = AS_THE_SOURCE_SAYS) -> list[Episode]:
    return list(Hdf5Demonstrations(path, spec).episodes())


def codes(episode: Episode) -> list[str]:
    return [item.code for item in episode.findings]


def rows_of(episode: Episode, column: str) -> np.ndarray:
    assert episode.rows is not None
    rows_TD = vectors(episode.rows[column])
    assert rows_TD is not None
    return rows_TD


def refusal(path: Path, spec: ReadSpec = AS_THE_SOURCE_SAYS) -> UserError:
    with pytest.raises(UserError) as refused:
        Hdf5Demonstrations(path, spec)
    return refused.value


def test_libero_as_its_layout_settles_it(tmp_path: Path) -> None:
    source = Hdf5Demonstrations(write_libero(tmp_path / "put_the_bowl_demo.hdf5", (5, 6)))
    card, (first, second) = source.card, list(source.episodes())
    assert (card.fps, card.version, card.robot, card.by_format) == (20.0, "libero", "Panda", {"colour_order": "rgb"})
    assert card.cameras == ("observation.images.agentview", "observation.images.eye_in_hand")
    assert card.features["observation.state"].names[5:7] == ["obs/ee_states[5]", "obs/gripper_states[0]"]
    arrays = libero_arrays(5, len("put_the_bowl_demo.hdf5"))
    state_TD = np.concatenate([arrays["obs/ee_states"], arrays["obs/gripper_states"]], axis=1)
    assert np.array_equal(rows_of(first, "observation.state"), state_TD)
    assert np.array_equal(rows_of(first, "action"), arrays["actions"])
    view = first.views["observation.images.agentview"]
    assert isinstance(view, Pictures) and np.array_equal(np.stack(list(view.frames())), arrays["obs/agentview_rgb"])
    assert first.instruction == second.instruction == "put the bowl on the stove"
    assert (second.length, second.extra) == (6, {"demo": "demo_1", "file": "put_the_bowl_demo.hdf5"})
    assert codes(first) == codes(second) == []


def test_robomimic_as_its_layout_settles_it(tmp_path: Path) -> None:
    path = write_robomimic(tmp_path / "demo.hdf5", (4,))
    (episode,), arrays = read(path), robomimic_arrays(4)
    parts = [arrays[f"obs/robot0_{name}"] for name in ("eef_pos", "eef_quat", "gripper_qpos")]
    assert np.array_equal(rows_of(episode, "observation.state"), np.concatenate(parts, axis=1))


def test_paths_are_joined_in_the_order_that_is_given(tmp_path: Path) -> None:
    path, arrays = write_robomimic(tmp_path / "demo.hdf5", (4,)), robomimic_arrays(4)
    spec = ReadSpec(state=("obs/object", "rewards"), action=("obs/robot0_gripper_qpos", "actions"))
    (episode,) = read(path, spec)
    assert np.array_equal(rows_of(episode, "observation.state")[:, :10], arrays["obs/object"])
    assert rows_of(episode, "observation.state").shape == (4, 11)
    assert np.array_equal(rows_of(episode, "action")[:, 2:], arrays["actions"])


def test_a_folder_is_one_source_with_numbers_of_its_own(tmp_path: Path) -> None:
    for name, words in (("task_10.hdf5", "ten"), ("task_2.h5", "two"), ("task_1.hdf5", "one")):
        write_libero(tmp_path / name, (3, 4), words)
    (tmp_path / ".hidden.hdf5").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("none")
    found = read(tmp_path)
    assert [item.source_episode for item in found] == [0, 1, 10_000, 10_001, 20_000, 20_001]
    assert [item.instruction for item in found] == ["one", "one", "two", "two", "ten", "ten"]
    assert [(item.file, item.extra["demo"]) for item in found][2] == ("task_2.h5", "demo_0")
    (tmp_path / "task_1.hdf5").write_bytes((tmp_path / "task_1.hdf5").read_bytes()[:3000])
    again = read(tmp_path)
    assert [item.source_episode for item in again] == [0, 10_000, 10_001, 20_000, 20_001], "others keep their numbers"
    assert (codes(again[0]), again[0].file, again[0].rows) == (["LAKE-100"], "task_1.hdf5", None)
    assert Hdf5Demonstrations(tmp_path).card.num_episodes == 5


def test_numbers_stay_apart_however_high_they_are(tmp_path: Path) -> None:
    for name in ("a.hdf5", "b.hdf5"):
        for number in (0, 123_456):
            write_demo(tmp_path / name, f"demo_{number}", libero_arrays(2))
        declare(tmp_path / name, env_args=ROBOSUITE_ARGS)
    assert [item.source_episode for item in read(tmp_path)] == [0, 123_456, 1_000_000, 1_123_456]


def test_a_single_file_keeps_its_numbers_in_order(tmp_path: Path) -> None:
    for number in (1, 10, 2):
        write_demo(tmp_path / "demo.hdf5", f"demo_{number}", libero_arrays(2))
    found = read(declare(tmp_path / "demo.hdf5", env_args=ROBOSUITE_ARGS))
    assert [item.source_episode for item in found] == [1, 2, 10]
    assert [codes(item) for item in found] == [["LAKE-024"]] * 3
    assert all("--set 'ingest.read.instruction==" in item.findings[0].fix for item in found)


def test_what_is_recognised(tmp_path: Path) -> None:
    path = write_libero(tmp_path / "folder/demo.hdf5")
    assert Hdf5Demonstrations.recognises(path) and Hdf5Demonstrations.recognises(path.parent)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.txt").write_text("")
    assert not any(Hdf5Demonstrations.recognises(tmp_path / name) for name in ("", "other", "other/a.txt", "gone"))


def test_the_state_is_asked_for_with_what_there_is(tmp_path: Path) -> None:
    path = write_isaac(tmp_path / "demo.hdf5", [True])
    error = refusal(path)
    assert error.code == "LAKE-035" and "ingest.read.state" in error.next_step
    assert '"obs/eef_pos" (3 a row)' in error.next_step and '"actions"' not in error.next_step
    assert "initial_state" not in error.next_step, "one row, not one per action"
    assert "ingest.read.fps" in refusal(path, ReadSpec(state=ISAAC.state)).next_step


@pytest.mark.parametrize(
    ("declared", "rate"), [("20", 20.0), ("30000/1001", 30000 / 1001), ("0.5", 0.5), (None, None), ("30", 30.0)]
)
def test_the_rate_is_declared_or_asked_for(declared: str | None, rate: float | None, tmp_path: Path) -> None:
    path = write_isaac(tmp_path / "demo.hdf5", [True])
    spec = ReadSpec(state=ISAAC.state, fps=declared)
    if rate is None:
        assert refusal(path, spec).code == "LAKE-035"
    else:
        assert Hdf5Demonstrations(path, spec).card.fps == rate


@pytest.mark.parametrize("declared", ["0", "-5", "fast", "1/0", "", "nan", "inf"])
def test_what_is_no_rate_is_asked_for_again(declared: str, tmp_path: Path) -> None:
    error = refusal(write_isaac(tmp_path / "demo.hdf5", [True]), ReadSpec(state=ISAAC.state, fps=declared))
    assert error.code == "LAKE-035" and repr(declared) in error.message


def test_a_rate_that_the_file_contradicts_is_refused(tmp_path: Path) -> None:
    path = write_robomimic(tmp_path / "demo.hdf5")
    error = refusal(path, ReadSpec(fps="10"))
    assert error.code == "LAKE-036" and error.message == "the source says fps 20.0, the recipe '10'"
    assert Hdf5Demonstrations(path, ReadSpec(fps="20")).card.fps == 20.0


def test_files_of_two_rates_are_not_mixed(tmp_path: Path) -> None:
    write_libero(tmp_path / "a.hdf5")
    declare(write_libero(tmp_path / "b.hdf5"), env_args={"type": 1, "env_kwargs": {"control_freq": 10}})
    assert [codes(item) for item in read(tmp_path)] == [[], [], ["LAKE-105"], ["LAKE-105"]]
    declare(tmp_path / "b.hdf5", env_args={})
    assert refusal(tmp_path).where.endswith("b.hdf5")


@pytest.mark.parametrize(
    ("env_args", "settled"),
    [
        (ROBOSUITE_ARGS, {"colour_order": "rgb"}),
        ({"type": 2, "env_kwargs": {"control_freq": 20}}, {}),
        ({"env_name": "real", "type": 4, "env_kwargs": {"control_freq": 20}}, {}),
    ],
)
def test_only_the_simulator_settles_the_order_of_colours(
    env_args: dict[str, Any], settled: dict[str, str], tmp_path: Path
) -> None:
    """D15: cameras of real robots come through OpenCV as often as not."""
    source = Hdf5Demonstrations(write_robomimic(tmp_path / "demo.hdf5", env_args=env_args))
    assert source.card.by_format == settled


def test_a_bad_demonstration_costs_itself(tmp_path: Path) -> None:
    path = write_libero(tmp_path / "demo.hdf5", (4,) * 7)
    with h5py.File(path, "a") as file:
        del file["data/demo_1/obs/ee_states"]
        del file["data/demo_2/actions"]
        file["data/demo_2/actions"] = motion(3, 7)
        for name in list(file["data/demo_3"]):
            del file["data/demo_3"][name]
        del file["data/demo_4/actions"]
        file["data/demo_4/actions"] = ["x"] * 4
        file["data/demo_6/obs/later_rgb"] = shades(4)
    found = read(path)
    assert [codes(item) for item in found] == [
        [], ["LAKE-108"], ["LAKE-102"], ["LAKE-020"], ["LAKE-109"], [], ["LAKE-106"],
    ]  # fmt: skip
    assert [item.rows is None for item in found] == [False, True, True, True, True, False, False]
    assert "observation.images.later" not in found[6].views


def test_pictures_in_another_form_are_named_camera_by_camera(tmp_path: Path) -> None:
    """Also where only one demonstration has them; not those that are read, nor where views are chosen."""
    path, pictures = write_robomimic(tmp_path / "demo.hdf5", (4, 4)), shades(4)
    odd = {
        "obs/front_image": pictures.transpose(0, 3, 1, 2),
        "obs/rgba": np.concatenate([pictures, pictures[..., :1]], axis=-1),
        "obs/side": pictures / np.float32(255),
        "obs/jpeg_image": np.zeros((4, 99), np.uint8),
        "obs/depth": pictures[..., :1],
    }
    write_demo(path, "demo_1", odd)
    first, second = read(path)
    assert codes(first) == [] and list(second.views) == ["observation.images.agentview"]
    said = {item.camera: item.message for item in second.findings if item.code == "LAKE-115"}
    assert set(said) == {f"observation.images.{key.removeprefix('obs/')}" for key in odd}
    assert all(str(odd[f"obs/{key.rpartition('.')[2]}"].shape) in words for key, words in said.items() if key)
    chosen = ReadSpec(views={"front": "obs/agentview_image"}, state=("obs/jpeg_image",))
    assert codes(read(path, chosen)[1]) == []


def test_an_absurd_length_costs_its_demonstration(tmp_path: Path) -> None:
    """Terabytes are declared, nothing is stored."""
    path = write_robomimic(tmp_path / "demo.hdf5", (4, 4, 4))
    with h5py.File(path, "a") as file:
        del file["data/demo_1/obs/robot0_eef_pos"]
        file.create_dataset("data/demo_1/obs/robot0_eef_pos", (2**40, 3), "f8", chunks=(1024, 3))
    assert [codes(item) for item in read(path)] == [[], ["LAKE-102"], []]
    alone = ReadSpec(state=("obs/robot0_eef_pos",), action=("obs/robot0_eef_pos",))
    assert [codes(item) for item in read(path, alone)] == [[], ["LAKE-100"], []]


def test_demonstrations_that_failed_are_counted_and_left_out(tmp_path: Path) -> None:
    """D18."""
    path = write_isaac(tmp_path / "demo.hdf5", [True, False, None, False])
    source = Hdf5Demonstrations(path, ISAAC)
    assert [item.source_episode for item in source.episodes()] == [0, 2] and source.card.num_episodes == 2
    (said,) = source.card.findings
    assert (said.code, said.severity) == ("LAKE-103", "warning")
    assert said.message.endswith("2 of 4, the first is demo_1 of demo.hdf5 (success: False)")
    kept = read(path, ReadSpec(state=ISAAC.state, fps="30", only_success=False))
    assert [item.extra.get("success") for item in kept] == [True, False, None, False]


def test_a_goal_that_is_not_recorded_is_said(tmp_path: Path) -> None:
    """D18: also where no demonstration of Isaac Lab has one, and never of layouts that have none."""
    path = write_isaac(tmp_path / "demo.hdf5", [True, True])
    with h5py.File(path, "a") as file:
        del file["data/demo_1/initial_state"]
    assert [codes(item) for item in read(path, ISAAC)] == [["LAKE-024"], ["LAKE-104", "LAKE-024"]]
    with h5py.File(path, "a") as file:
        del file["data/demo_0/initial_state"]
    assert [codes(item)[0] for item in read(path, ISAAC)] == ["LAKE-104", "LAKE-104"]
    assert "LAKE-104" not in codes(read(write_robomimic(tmp_path / "other.hdf5"))[0])


def test_words_are_the_recipe_s_before_the_file_s(tmp_path: Path) -> None:
    path = write_libero(tmp_path / "demo.hdf5", (3, 3))
    write_demo(path, "demo_0", {}, said="of the demonstration", marks="valid")
    assert [item.instruction for item in read(path, ReadSpec(instruction="=lift"))] == ["lift", "lift"]
    assert [item.instruction for item in read(path, ReadSpec(instruction="said"))] == ["of the demonstration", ""]
    marked = read(path, ReadSpec(instruction="marks", ignore_tasks=("valid",)))[0]
    assert (marked.instruction, codes(marked)) == ("", ["LAKE-050", "LAKE-024"])


def test_sentences_of_one_demonstration_come_first(tmp_path: Path) -> None:
    path = write_libero(tmp_path / "demo.hdf5", (3, 3))
    write_demo(path, "demo_1", {}, ep_meta=json.dumps({"lang": "close the door"}))
    assert [item.instruction for item in read(path)] == ["put the bowl on the stove", "close the door"]


def test_views_by_name_are_expected_everywhere(tmp_path: Path) -> None:
    path = write_libero(tmp_path / "demo.hdf5", (3, 3))
    with h5py.File(path, "a") as file:
        file["data/demo_0/cams/front"] = shades(3)
    source = Hdf5Demonstrations(path, ReadSpec(views={"front": "cams/front"}))
    assert source.card.cameras == ("observation.images.front",)
    there, absent = source.episodes()
    assert list(there.views) == list(absent.views) == ["observation.images.front"]


def test_an_empty_folder_lists_nothing(tmp_path: Path) -> None:
    source = Hdf5Demonstrations(tmp_path)
    assert (source.card.num_episodes, list(source.episodes()), source.card.version) == (0, [], "unknown")


def test_an_episode_without_rows_has_no_views(tmp_path: Path) -> None:
    """It is said once that there is nothing, not once per camera."""
    path = tmp_path / "demo.hdf5"
    for number, length in enumerate((0, 3)):
        arrays = {"actions": motion(length, 7), "obs/x": motion(length, 2), "obs/a_image": shades(length)}
        write_demo(path, f"demo_{number}", arrays)
    empty, full = read(path, ReadSpec(state=("obs/x",), fps="5"))
    assert empty.rows is not None and empty.rows.num_rows == 0 and empty.views == {}
    assert full.rows is not None and full.rows.num_rows == 3 and list(full.views) == ["observation.images.a"]
