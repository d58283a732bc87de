"""What an HDF5 file of demonstrations says of itself: robosuite, robomimic, LIBERO, RoboCasa and Isaac Lab.

All keep `data/demo_N` with `actions` and differ in what stands beside it. Nothing that is read here is guessed.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from data_lake.findings import Finding, finding
from data_lake.sources.files import ODD, Unreadable, describe, ensure_present

SUFFIXES = (".hdf5", ".h5")
SETTLED_STATES = (
    ("obs/ee_states", "obs/gripper_states"),
    ("obs/robot0_eef_pos", "obs/robot0_eef_quat", "obs/robot0_gripper_qpos"),
)
"""LIBERO: position and axis-angle of the end effector (6), two finger joints. robomimic on robosuite: position,
quaternion, finger joints; settled for one arm only."""

ROBOSUITE = 1  # robomimic's EnvType
_DEMO = re.compile(r"demo_(0|[1-9][0-9]*)")
_PICTURE = re.compile(r"_(image|rgb)$")
_LIKE_PICTURES = re.compile(r"image|rgb", re.IGNORECASE)
_SUCCEEDED = ("true", "1", "yes", "success", "succeeded")
"""What a text has to say to mean success."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Demo:
    """A demonstration as its file lists it. number: in its name. length: as declared. instruction: of its own.
    failed: by its own word. has_goal: not without the `initial_state` that its layout records. extra: seed, success
    and the masks that it belongs to."""

    name: str
    number: int
    length: int | None
    instruction: str
    failed: bool
    has_goal: bool
    extra: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class DemoFile:
    """What one file holds. rate_hz: of control, where it is said. is_robosuite: that simulator rendered it.
    numbers: (rows, width) by path, and views: path by name, both as most of its demonstrations have them.
    unreadable: why nothing of it can be read. findings: about what stands beside the demonstrations."""

    path: Path
    dialect: str = ""
    robot: str = ""
    rate_hz: float | None = None
    is_robosuite: bool = False
    demos: tuple[Demo, ...] = ()
    numbers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    unreadable: Unreadable | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def state(self) -> tuple[str, ...]:
        """The paths that are the robot's state by the layout; empty where the layout does not settle it."""
        if any(path.startswith("obs/robot1_") for path in self.numbers):
            return ()
        return next((paths for paths in SETTLED_STATES if all(path in self.numbers for path in paths)), ())


@contextmanager
def opened(path: Path) -> Iterator[h5py.File]:
    """The file, to be read. Raises Unreadable: LAKE-008, LAKE-009, and LAKE-100 for what h5py cannot read of it."""
    ensure_present(path, "LAKE-009")
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError, MemoryError, *ODD) as error:  # a shape may be absurd
        raise Unreadable("LAKE-100", describe(error)) from error


def item_at(owner: h5py.Group, path: str) -> h5py.Group | h5py.Dataset | None:
    """Raises Unreadable LAKE-100 for what a link takes from another file: no digest of the source would cover it."""
    item = owner.get(path)
    if not isinstance(item, h5py.Group | h5py.Dataset):
        return None
    is_linked = isinstance(item, h5py.Dataset) and (item.is_virtual or item.external is not None)
    if is_linked or item.file.filename != owner.file.filename:
        raise Unreadable("LAKE-100", f"{owner.name}/{path} lies in another file")
    return item


def group_at(owner: h5py.Group, path: str) -> h5py.Group | None:
    item = item_at(owner, path)
    return item if isinstance(item, h5py.Group) else None


def members(group: h5py.Group | None) -> dict[str, h5py.Group | h5py.Dataset]:
    """What a group holds by name; nothing when there is no group."""
    items = {} if group is None else {str(name): item_at(group, str(name)) for name in group}
    return {name: item for name, item in items.items() if item is not None}


def list_file(path: Path) -> DemoFile:
    """What the file at `path` holds, its demonstrations in the order of their numbers."""
    try:
        with opened(path) as file:
            return _listed(path, file)
    except Unreadable as error:
        return DemoFile(path=path, unreadable=error)


def _listed(path: Path, file: h5py.File) -> DemoFile:
    """Raises Unreadable LAKE-101 when no demonstration is there."""
    top = group_at(file, "data")
    listed = members(top)
    named = {name: demo for name, demo in listed.items() if _DEMO.fullmatch(name) and isinstance(demo, h5py.Group)}
    if top is None or not named:
        seen = ", ".join([*(f"data/{name}" for name in listed), *file][:8])
        raise Unreadable("LAKE-101", f"it holds {seen or 'nothing'}")
    args, masks = _json_of(top, "env_args"), _masks(file)
    has_goals = any("initial_state" in demo for demo in named.values())
    is_isaac = has_goals or str(args.get("env_name")).startswith("Isaac")
    words = _sentence(_json_of(top, "problem_info").get("language_instruction"))
    example = _example(named)
    strange = ", ".join(sorted(listed.keys() - named.keys())[:8])
    return DemoFile(
        path=path,
        dialect=_dialect(top, is_isaac=is_isaac),
        robot=_robot(args, _json_of(top, "env_info")),
        rate_hz=_rate_hz(args),
        is_robosuite=args.get("type") == ROBOSUITE,
        demos=tuple(
            _demo(name, named[name], masks.get(name, []), words, goals=is_isaac) for name in sorted(named, key=_number)
        ),
        numbers=_numbers_in(example),
        views=pictures_in(example),
        findings=(finding("LAKE-106", strange, file=path.name),) if strange else (),
    )


def _example(demos: Mapping[str, h5py.Group]) -> h5py.Group:
    """A demonstration that holds what most of them hold; of equally many, what holds more."""
    outlines = {name: (*demo, *(group_at(demo, "obs") or ())) for name, demo in demos.items()}
    counts = Counter(outlines.values())
    return demos[max(outlines, key=lambda name: (counts[outlines[name]], len(outlines[name])))]


def _number(name: str) -> int:
    return int(name.removeprefix("demo_"))


def _demo(name: str, group: h5py.Group, masks: list[str], words: str, *, goals: bool) -> Demo:
    """goals: this layout records `initial_state`."""
    said = {key: _plain(group.attrs.get(key)) for key in ("seed", "success")}
    length = _plain(group.attrs.get("num_samples"))
    return Demo(
        name=name,
        number=_number(name),
        length=length if isinstance(length, int) else None,
        instruction=_sentence(_json_of(group, "ep_meta").get("lang")) or words,
        failed=said["success"] is not None and not _is_true(said["success"]),
        has_goal=not goals or "initial_state" in group,
        extra={key: value for key, value in said.items() if value is not None}
        | ({"mask": ",".join(masks)} if masks else {}),
    )


def _is_true(said: Any) -> bool:
    return said.strip().lower() in _SUCCEEDED if isinstance(said, str) else bool(said)


def _numbers_in(demo: h5py.Group) -> dict[str, tuple[int, int]]:
    """(rows, width) by path of all that is numbers per row."""
    found: dict[str, tuple[int, int]] = {}

    def look(path: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset) and item.ndim in (1, 2) and item.dtype.kind in "fiub":
            found[path] = (len(item), math.prod(item.shape[1:]))

    demo.visititems(look)
    return found


def pictures_in(demo: h5py.Group) -> dict[str, str]:
    """The path of each view that `obs` holds as (T, H, W, 3) uint8: `agentview` for obs/agentview_image."""
    keys = [
        key
        for key, item in members(group_at(demo, "obs")).items()
        if isinstance(item, h5py.Dataset) and item.ndim == 4 and item.shape[3] == 3 and item.dtype == np.uint8
    ]
    views = [_PICTURE.sub("", key) for key in keys]
    views = views if len(set(views)) == len(keys) else keys
    return {view: f"obs/{key}" for view, key in zip(views, keys, strict=True)}


def pictures_left(demo: h5py.Group, taken: Collection[str]) -> dict[str, str]:
    """What `obs` holds in another form and looks like pictures, by its dimensions or its name: type and shape by key.
    taken: paths that are read, or named already."""
    return {
        key: f"obs/{key} is {item.dtype} {item.shape}"
        for key, item in members(group_at(demo, "obs")).items()
        if isinstance(item, h5py.Dataset) and (item.ndim == 4 or _LIKE_PICTURES.search(key))
        if f"obs/{key}" not in taken
    }


def _masks(file: h5py.File) -> dict[str, list[str]]:
    """The names of the masks that each demonstration belongs to."""
    found: dict[str, list[str]] = {}
    for name, listed in members(group_at(file, "mask")).items():
        if isinstance(listed, h5py.Dataset) and h5py.check_string_dtype(listed.dtype):
            for demo in np.atleast_1d(listed.asstr()[()]).tolist():
                found.setdefault(demo, []).append(name)
    return found


def _dialect(top: h5py.Group, *, is_isaac: bool) -> str:
    if "problem_info" in top.attrs:
        return "libero"
    if is_isaac:
        return "isaaclab"
    return "robomimic" if "env_args" in top.attrs else "robosuite" if "env_info" in top.attrs else "demonstrations"


def _rate_hz(env_args: Mapping[str, Any]) -> float | None:
    kwargs = env_args.get("env_kwargs")
    rate = kwargs.get("control_freq") if isinstance(kwargs, dict) else None
    if isinstance(rate, int | float) and not isinstance(rate, bool) and 0 < rate < math.inf:
        return float(rate)
    return None


def _robot(env_args: Mapping[str, Any], env_info: Mapping[str, Any]) -> str:
    kwargs = env_args.get("env_kwargs")
    robots = (kwargs if isinstance(kwargs, dict) else env_info).get("robots")
    named = robots if isinstance(robots, list) else [robots]
    return "+".join(name for name in named if isinstance(name, str))


def _json_of(owner: h5py.Group, name: str) -> dict[str, Any]:
    """The JSON object in an attribute; empty where there is none."""
    try:
        value = json.loads(_plain(owner.attrs.get(name)) or "{}")
    except (TypeError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _sentence(words: Any) -> str:
    """LIBERO writes a sentence, or the list of its words."""
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        words = " ".join(words)
    return words.strip() if isinstance(words, str) else ""


def _plain(value: Any) -> Any:
    """An attribute as Python has it; None for what is no single value."""
    if isinstance(value, np.ndarray | np.generic) and value.size == 1:
        value = value.item()
    if isinstance(value, bytes):
        value = value.decode()
    return value if isinstance(value, str | int | float | bool) else None
