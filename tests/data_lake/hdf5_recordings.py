"""Small HDF5 demonstrations written for tests, in the layouts of robomimic, RoboCasa, LIBERO and Isaac Lab."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tests.data_lake.recordings import TASKS

SIZE = 16
ROBOSUITE_ARGS = {"env_name": "Lift", "type": 1, "env_kwargs": {"robots": ["Panda"], "control_freq": 20}}
ISAAC_ARGS = {"env_name": "Isaac-Stack-Cube-Franka-IK-Rel-v0", "type": 2}


def motion(length: int, width: int, seed: int = 0) -> np.ndarray:
    """(T, D) float64 that a float32 holds."""
    return np.random.default_rng(seed).normal(size=(length, width)).astype(np.float32).astype(np.float64)


def flat(length: int, colour: Sequence[int], size: int = SIZE) -> np.ndarray:
    """(T, H, W, 3) uint8 of one colour."""
    return np.full((length, size, size, 3), colour, np.uint8)


def shades(length: int, seed: int = 0, size: int = SIZE) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (length, size, size, 3), np.uint8)


def write_demo(path: Path, name: str, arrays: Mapping[str, Any], **attributes: Any) -> None:
    """Add a demonstration to the file. arrays: by path inside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "a") as file:
        demo = file.require_group(f"data/{name}")
        for place, values in arrays.items():
            demo[place] = values
        demo.attrs.update(attributes)


def declare(path: Path, masks: Mapping[str, Sequence[str]] = {}, **attributes: Any) -> Path:
    """Attributes of `data`, objects as JSON, and masks of demonstrations as robomimic writes them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "a") as file:
        top = file.require_group("data")
        for name, value in attributes.items():
            top.attrs[name] = json.dumps(value) if isinstance(value, dict) else value
        for name, demos in masks.items():
            file[f"mask/{name}"] = np.array(demos, dtype="S")
    return path


def robomimic_arrays(length: int, seed: int = 0) -> dict[str, np.ndarray]:
    return {
        "actions": motion(length, 7, seed),
        "rewards": np.zeros(length),
        "dones": np.zeros(length, np.int64),
        "states": motion(length, 32, seed + 1),
        "obs/robot0_eef_pos": motion(length, 3, seed + 2),
        "obs/robot0_eef_quat": motion(length, 4, seed + 3),
        "obs/robot0_gripper_qpos": motion(length, 2, seed + 4),
        "obs/object": motion(length, 10, seed + 5),
        "obs/agentview_image": shades(length, seed),
        "next_obs/robot0_eef_pos": motion(length, 3, seed + 6),
    }


def write_robomimic(path: Path, lengths: Sequence[int] = (8, 12, 10), **attributes: Any) -> Path:
    """robomimic's layout, each demonstration with a sentence of its own as RoboCasa writes them."""
    for number, length in enumerate(lengths):
        lang = json.dumps({"lang": TASKS[number % 2], "layout_id": 3})
        arrays = robomimic_arrays(length, 10 * number)
        write_demo(path, f"demo_{number}", arrays, num_samples=length, model_file="<mujoco/>", ep_meta=lang)
    return declare(path, **{"env_args": ROBOSUITE_ARGS, "total": sum(lengths)} | attributes)


def libero_arrays(length: int, seed: int = 0) -> dict[str, np.ndarray]:
    return {
        "actions": motion(length, 7, seed),
        "dones": np.zeros(length, np.uint8),
        "robot_states": motion(length, 9, seed),
        "obs/ee_states": motion(length, 6, seed + 1),
        "obs/gripper_states": motion(length, 2, seed + 2),
        "obs/joint_states": motion(length, 7, seed + 3),
        "obs/agentview_rgb": shades(length, seed),
        "obs/eye_in_hand_rgb": shades(length, seed + 1),
    }


def write_libero(path: Path, lengths: Sequence[int] = (8, 12), words: Any = "put the bowl on the stove") -> Path:
    """One task of LIBERO, as its create_dataset.py writes it."""
    for number, length in enumerate(lengths):
        write_demo(path, f"demo_{number}", libero_arrays(length, len(path.name) + number), num_samples=length)
    info = {"problem_name": "libero_tabletop_manipulation", "language_instruction": words}
    return declare(path, env_args=ROBOSUITE_ARGS, problem_info=info, num_demos=len(lengths))


def isaac_arrays(length: int, seed: int = 0) -> dict[str, np.ndarray]:
    return {
        "actions": motion(length, 7, seed).astype(np.float32),
        "obs/eef_pos": motion(length, 3, seed + 1).astype(np.float32),
        "obs/gripper_pos": motion(length, 2, seed + 2).astype(np.float32),
        "initial_state/rigid_object/cube_1/root_pose": motion(1, 7, seed),
    }


def write_isaac(path: Path, successes: Sequence[bool | None], length: int = 6) -> Path:
    """Isaac Lab's layout. successes: None for a demonstration that says nothing of it."""
    for number, success in enumerate(successes):
        said = {} if success is None else {"success": success}
        write_demo(path, f"demo_{number}", isaac_arrays(length, number), num_samples=length, seed=number + 7, **said)
    return declare(path, env_args=ISAAC_ARGS, total=length * len(successes))
