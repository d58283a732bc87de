"""HDF5 demonstrations of the robomimic family: a file with `data/demo_N`, or a folder that directly holds such files.

Pictures: robosuite's are RGB by the format, others' order is asked for; which way is up is never settled (robosuite
renders upside down, converters turn it and leave LIBERO's `macros_image_convention` as it was).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import h5py
import numpy as np
import pyarrow as pa

from data_lake.findings import Finding, finding
from data_lake.schema import fixed
from data_lake.sources.episode import (
    NOTHING,
    RATE,
    Episode,
    Feature,
    Part,
    Pictures,
    SourceCard,
    ask_together,
    asked,
    contradicted,
    declared_rate,
)
from data_lake.sources.files import Unreadable, natural
from data_lake.sources.hdf5_layout import SUFFIXES, Demo, DemoFile, list_file, opened, pictures_in, pictures_left
from data_lake.sources.hdf5_values import read_numbers, read_pictures, read_words
from data_lake.sources.instructions import instruct_rows
from data_lake.specs import AS_THE_SOURCE_SAYS, ReadSpec

STRIDE = 10_000
"""From one file of a folder to the next; more where a demonstration has a higher number."""

CAMERA = "observation.images."


class Hdf5Demonstrations:
    """Demonstration n of the k-th file (in natural order, from 0) is episode k * STRIDE + n: of a single file, n.

    State: `read.state`, else what the layout settles. LIBERO: ee_states and gripper_states, 8 numbers, as policies
    trained on LIBERO see them (joint_states tell the same twice). robomimic on robosuite with one arm:
    robot0_eef_pos, robot0_eef_quat and robot0_gripper_qpos, as robomimic's own configurations have them. Rate:
    `read.fps`, else env_args' control_freq. A file that cannot be read stands in quarantine under its first number.
    """

    TAKES: ClassVar[frozenset[str]] = frozenset({"fps", "state", "action", "views", "instruction", "only_success"})

    def __init__(self, path: Path, read: ReadSpec = AS_THE_SOURCE_SAYS) -> None:
        self._read, self._root = read, path
        files = [list_file(file) for file in sorted(hdf5_files(path), key=natural)]
        largest = max((demo.number for file in files for demo in file.demos), default=0)
        stride = max(STRIDE, 10 ** len(str(largest)))
        self._files = {place * stride: file for place, file in enumerate(files)}
        sound = [file for file in files if file.demos]
        ask_together(lambda: self._columns(sound), lambda: self._rate(sound))
        self._state, self._action = self._columns(sound)
        self._fps = self._rate(sound)
        views = dict.fromkeys(read.views or (view for file in sound for view in file.views))
        self._card = SourceCard(
            root=path,
            format="hdf5",
            version=", ".join(sorted({file.dialect for file in sound})) or "unknown",
            fps=self._fps,
            robot=next((file.robot for file in sound if file.robot), ""),
            features={
                name: feature
                for name, paths in (("observation.state", self._state), ("action", self._action))
                if (feature := _feature(paths, sound)) is not None
            },
            cameras=tuple(CAMERA + view for view in views),
            num_episodes=sum(len(self._kept(file)) + (file.unreadable is not None) for file in files),
            instruction_source=read.instruction or "language",
            by_format={"colour_order": "rgb"} if all(file.is_robosuite for file in sound) else {},
            findings=(*(item for file in files for item in file.findings), *self._left_out(sound)),
        )

    @property
    def card(self) -> SourceCard:
        return self._card

    @staticmethod
    def recognises(path: Path) -> bool:
        return any(file.suffix.lower() in SUFFIXES for file in hdf5_files(path))

    @property
    def parts(self) -> Sequence[Part]:
        return [Part(files=(file.path,), said=str(first)) for first, file in self._files.items()]

    @property
    def shared(self) -> Mapping[str, str]:
        return {}

    def episodes(self, left_out: Mapping[int, int] = NOTHING) -> Iterator[Episode]:
        for place, (first, file) in enumerate(self._files.items()):
            if place not in left_out:
                yield from (replace(episode, part=place) for episode in self._of_file(first, file))

    def _of_file(self, first: int, file: DemoFile) -> Iterator[Episode]:
        if (error := file.unreadable) is not None:
            name = self.card.relative(file.path)
            found = finding(error.code, error.detail, episode=first, file=name)
            yield Episode(source_episode=first, rows=None, file=name, findings=(found,))
        for demo in self._kept(file):
            yield self._episode(file, demo, first + demo.number)

    def _episode(self, file: DemoFile, demo: Demo, number: int) -> Episode:
        name = self.card.relative(file.path)
        findings: list[Finding] = []
        rows, instruction, views = None, "", {}
        if not demo.has_goal:
            findings.append(finding("LAKE-104", episode=number, file=name))
        if self._read.fps is None and file.rate_hz != self._fps:
            findings.append(finding("LAKE-105", f"{file.rate_hz:g}, not {self._fps:g} Hz", episode=number, file=name))
        try:
            with opened(file.path) as root:
                top, group = root.require_group("data"), root.require_group(f"data/{demo.name}")
                table = self._rows(group, number)
                said = self._read.instruction
                words = read_words((group, top), said) if said else demo.instruction
                rows, instruction, odd = instruct_rows(table, [words] * len(table), self._read.ignore_tasks, number)
                findings += odd
                views, odd = self._pictures(file, group, number) if table.num_rows else ({}, [])
                findings += odd
        except Unreadable as error:
            findings.append(finding(error.code, error.detail, episode=number, file=name))
        return Episode(
            source_episode=number,
            rows=rows,
            instruction=instruction,
            views=views,
            file=name,
            length=demo.length,
            extra={"demo": demo.name, "file": file.path.name, **demo.extra},
            findings=tuple(findings),
        )

    def _rows(self, demo: h5py.Group, number: int) -> pa.Table:
        """Raises Unreadable: LAKE-020, and what `read_numbers` raises."""
        if not len(demo):
            raise Unreadable("LAKE-020")
        parts = read_numbers(demo, (*self._state, *self._action))
        state_TD = np.concatenate([parts[path] for path in self._state], axis=1)
        action_TD = np.concatenate([parts[path] for path in self._action], axis=1)
        return pa.table(
            {
                "observation.state": fixed(state_TD),
                "action": fixed(action_TD),
                "frame_index": pa.array(np.arange(len(state_TD))),
                "episode_index": pa.array(np.full(len(state_TD), number)),
            }
        )

    def _pictures(self, file: DemoFile, demo: h5py.Group, number: int) -> tuple[dict[str, Pictures], list[Finding]]:
        """The views that `read.views` names, else those of the file: expected of each of its demonstrations."""
        places = self._read.views or file.views
        strange = [] if self._read.views else sorted(set(pictures_in(demo).values()) - set(places.values()))
        found = [finding("LAKE-106", ", ".join(strange), episode=number, file=file.path.name)] if strange else []
        left = (
            {} if self._read.views else pictures_left(demo, {*places.values(), *strange, *self._state, *self._action})
        )
        found += [
            finding("LAKE-115", seen, episode=number, camera=CAMERA + key, file=file.path.name)
            for key, seen in left.items()
        ]
        return {
            CAMERA + view: Pictures(path=file.path, frames=partial(read_pictures, file.path, f"{demo.name}/{place}"))
            for view, place in places.items()
        }, found

    def _kept(self, file: DemoFile) -> list[Demo]:
        return [demo for demo in file.demos if not (demo.failed and self._read.only_success)]

    def _left_out(self, files: Sequence[DemoFile]) -> Iterator[Finding]:
        """LAKE-103, once for the whole source."""
        failed = [(file, demo) for file in files for demo in file.demos if demo.failed]
        if failed and self._read.only_success:
            total = sum(len(file.demos) for file in files)
            file, demo = failed[0]
            first = f"{demo.name} of {file.path.name} (success: {demo.extra['success']!r})"
            detail = f"{len(failed)} of {total}, the first is {first}"
            yield finding("LAKE-103", detail)

    def _rate(self, files: Sequence[DemoFile]) -> float:
        """Hz. NaN where there is no demonstration to have one. Raises UserError LAKE-035, LAKE-036."""
        rate = declared_rate(self._root, self._read)
        if rate is None:
            if silent := next((file for file in files if file.rate_hz is None), None):
                raise asked(silent.path, "fps", "at what rate its rows are", RATE, 20)
            return next((file.rate_hz for file in files if file.rate_hz is not None), math.nan)
        declared = float(rate)
        for file in files:
            if file.rate_hz is not None and not math.isclose(file.rate_hz, declared, rel_tol=1e-4):
                raise contradicted(file.path, "fps", file.rate_hz, self._read.fps)
        return declared

    def _columns(self, files: Sequence[DemoFile]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Paths of the state and of the action. Raises UserError LAKE-035."""
        action = self._read.action or ("actions",)
        state = self._read.state or next((file.state for file in files if file.state), ())
        if files and not state:
            numbers = files[0].numbers
            counts = {numbers[path][0] for path in action if path in numbers}
            widths = {
                path: width
                for path, (count, width) in sorted(numbers.items())
                if path not in action and count in (counts or {count})
            }
            there = ", ".join(f'"{path}" ({width} a row)' for path, width in widths.items())
            choices = f"a list out of {there or 'what the file does not have: it holds no other numbers'}"
            why = "which of its numbers are the robot's state"
            raise asked(files[0].path, "state", why, choices, list(widths)[:1] or ["states"])
        return state, action


def hdf5_files(path: Path) -> list[Path]:
    """The file itself, or those that the folder directly holds; hidden ones are no part of a source."""
    if path.is_file():
        return [path]
    named = [file for file in path.glob("*") if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")]
    return [file for file in named if not file.is_dir()]


def _feature(paths: Sequence[str], files: Sequence[DemoFile]) -> Feature | None:
    """As the first file has it that has all of `paths`. Dimensions are named after where they came from."""
    for file in files:
        if paths and all(path in file.numbers for path in paths):
            names = [f"{path}[{place}]" for path in paths for place in range(file.numbers[path][1])]
            return Feature(dtype="float32", shape=(len(names),), names=names)
    return None
