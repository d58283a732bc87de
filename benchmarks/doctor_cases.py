"""Makers of the recordings in doctor_cases.toml: small sound LeRobot folders, and one thing done to each.

Every maker takes the case's empty folder and the case's values, and returns the source's path.
"""

import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flows.places import ROOT
from tests.data_lake import bag_recordings, hdf5_recordings, recordings, rlds_recordings
from tests.data_lake.recordings import change_episode_table, change_info, change_rows, stats_of, write_lines

LENGTHS = (24, 36, 30)
RECORDED = Path(os.environ.get("VLALOOP_SHARED_DATA", ROOT.parent / "shared" / "data"))

Rows = Callable[[int, int, int], pa.Table]


def lively(episode: int, length: int, first: int, state_0: tuple[float, float] | None = None) -> pa.Table:
    """Rows in which every dimension moves. state_0: centre and half range of the first one, else as the others."""
    table = recordings.rows_of(episode, length, first)
    draw = np.random.default_rng(episode)
    state = draw.uniform(-1, 1, (length, 3)).cumsum(axis=0).astype(np.float32)
    if state_0 is not None:
        state[:, 0] = state_0[0] + state_0[1] * draw.uniform(-1, 1, length)
    action = np.roll(state[:, :2], -1, axis=0)
    columns = {"observation.state": state, "action": action}
    for name, values in columns.items():
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
        table = table.set_column(table.column_names.index(name), name, vectors)
    return table


def sound(folder: Path, layout: str, rows: Rows = lively) -> Path:
    """Three episodes, one camera, two tasks, all statistics."""
    v2 = recordings.write_v2(folder / "v2", LENGTHS, rows=rows)
    return v2 if layout == "v2.1" else recordings.write_v3(folder / "v3", v2, LENGTHS)


def recorded(folder: Path, name: str, meta: str = "meta") -> Path:
    """A recorded set as it is. Raises FileNotFoundError where it is not on this machine."""
    if not (RECORDED / name).is_dir():
        raise FileNotFoundError(f"{name} is not here (VLALOOP_SHARED_DATA)")
    copy = folder / name
    shutil.copytree(RECORDED / name, copy)
    if meta != "meta":
        shutil.rmtree(copy / "meta")
        (copy / meta).rename(copy / "meta")
    return copy


def declared(folder: Path, layout: str, **values: Any) -> Path:
    source = sound(folder, layout)
    change_info(source, **values)
    return source


def listed(folder: Path, layout: str, episode: int, **values: Any) -> Path:
    """Other values in the list of episodes."""
    source = sound(folder, layout)
    change = recordings.change_episodes if layout == "v2.1" else change_episode_table
    change(source, episode, **values)
    return source


def swapped_ranges(folder: Path, one: int, other: int) -> Path:
    source = sound(folder, "v3.0")
    table = pq.read_table(source / "meta/episodes/chunk-000/file-000.parquet").to_pydict()
    ranges = list(zip(table["dataset_from_index"], table["dataset_to_index"], strict=True))
    for episode, (begin, end) in ((one, ranges[other]), (other, ranges[one])):
        change_episode_table(source, episode, dataset_from_index=begin, dataset_to_index=end)
    return source


def cosmetic(folder: Path, layout: str) -> Path:
    """What differs between recorders without meaning: `info`, `video_info`, `fps` beside the features."""
    source = sound(folder, layout)
    features = json.loads((source / "meta/info.json").read_text())["features"]
    for feature in features.values():
        video = {"video_info": {"video.fps": 10.0}, "info": None}
        feature.update(video if feature["dtype"] == "video" else {"fps": 10.0})
    change_info(source, features=features)
    return source


def cut(folder: Path, layout: str, file: str, num_bytes: int) -> Path:
    source = sound(folder, layout)
    os.truncate(source / file, (source / file).stat().st_size - num_bytes)
    return source


def removed(folder: Path, layout: str, file: str) -> Path:
    source = sound(folder, layout)
    (source / file).unlink()
    return source


def replaced(folder: Path, layout: str, file: str, text: str) -> Path:
    source = sound(folder, layout)
    (source / file).write_text(text)
    return source


def swapped(folder: Path, layout: str, one: str, other: str) -> Path:
    source = sound(folder, layout)
    first = (source / one).read_bytes()
    (source / one).write_bytes((source / other).read_bytes())
    (source / other).write_bytes(first)
    return source


def recoded(folder: Path, layout: str, fourcc: str) -> Path:
    """Every video says that it is of another codec."""
    source = sound(folder, layout)
    for path in source.rglob("*.mp4"):
        content = bytearray(path.read_bytes())
        place = content.index(b"avc1", content.index(b"stsd"))
        content[place : place + 4] = fourcc.encode()
        path.write_bytes(content)
    return source


def flipped(folder: Path, layout: str, file: str, packet: int) -> Path:
    """Bytes of one packet inverted, behind its headers; the boxes and all sizes stay."""
    source = sound(folder, layout)
    with av.open(str(source / file)) as container:
        packets = [(item.pos, item.size) for item in container.demux(video=0) if item.pts is not None]
    place, size = packets[packet]
    content = bytearray((source / file).read_bytes())
    for at in range((place or 0) + 6, (place or 0) + size):
        content[at] ^= 0xFF
    (source / file).write_bytes(content)
    return source


def _rows_file(source: Path, episode: int) -> Path:
    return source / f"data/chunk-000/episode_{episode:06d}.parquet"


def valued(folder: Path, layout: str, column: str, episode: int, row: int, value: str) -> Path:
    source = sound(folder, layout)
    values = pq.read_table(_rows_file(source, episode))[column].to_pylist()
    values[row][0] = float(value)
    change_rows(_rows_file(source, episode), **{column: values})
    return source


def paused(folder: Path, layout: str, episode: int, row: int, pause_s: float) -> Path:
    source = sound(folder, layout)
    times = pq.read_table(_rows_file(source, episode))["timestamp"].to_numpy().copy()
    times[row:] += pause_s
    change_rows(_rows_file(source, episode), timestamp=times)
    return source


def repeated_frame(folder: Path, layout: str, episode: int, row: int) -> Path:
    source = sound(folder, layout)
    frames = pq.read_table(_rows_file(source, episode))["frame_index"].to_numpy().copy()
    frames[row] = frames[row - 1]
    change_rows(_rows_file(source, episode), frame_index=frames)
    return source


def still(folder: Path, layout: str, centre: float, half_range: float) -> Path:
    """The first dimension of state and action lies within half_range of centre."""
    return sound(folder, layout, partial(lively, state_0=(centre, half_range)))


def copied_episode(folder: Path, layout: str, one: int, other: int, splits: dict[str, str] | None = None) -> Path:
    """Episode `other` is `one` again, under its own number; the list and the statistics say so."""

    def rows(episode: int, length: int, first: int) -> pa.Table:
        table = lively(one if episode == other else episode, length, first)
        numbers = pa.array(np.full(length, episode))
        return table.set_column(table.column_names.index("episode_index"), "episode_index", numbers)

    lengths = [LENGTHS[one if episode == other else episode] for episode in range(len(LENGTHS))]
    source = recordings.write_v2(folder / "v2", lengths, rows=rows)
    for video in source.rglob(f"episode_{one:06d}.mp4"):
        shutil.copy(video, video.with_name(f"episode_{other:06d}.mp4"))
    if splits is not None:
        change_info(source, splits=splits)
    return source


def averaged(folder: Path) -> Path:
    """99 rows of zeros and 101 rows from 0 to 100; their quantiles are averaged, as merging tools do."""
    lengths = (99, 101)

    def rows(episode: int, length: int, first: int) -> pa.Table:
        ramp = np.zeros(length) if episode == 0 else np.linspace(0, 100, length)
        table = lively(episode, length, first)
        action = np.stack([ramp, ramp], axis=1).astype(np.float32)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(action.reshape(-1)), 2)
        return table.set_column(table.column_names.index("action"), "action", vectors)

    v2 = recordings.write_v2(folder / "v2", lengths, rows=rows)
    source = recordings.write_v3(folder / "v3", v2, lengths)
    each = [stats_of(pq.read_table(_rows_file(v2, episode)), quantiles=True) for episode in range(2)]
    stats = json.loads((source / "meta/stats.json").read_text())
    for name, found in stats.items():
        for key in recordings.QUANTILES:
            found[key] = np.average([item[name][key] for item in each], axis=0, weights=lengths).tolist()
    (source / "meta/stats.json").write_text(json.dumps(stats))
    return source


def without_quantiles(folder: Path, layout: str) -> Path:
    source = sound(folder, layout)
    stats = json.loads((source / "meta/stats.json").read_text())
    kept = {name: {key: value for key, value in found.items() if key[0] != "q"} for name, found in stats.items()}
    (source / "meta/stats.json").write_text(json.dumps(kept))
    return source


def other_statistics(
    folder: Path, layout: str, feature: str, statistic: str, add: float, episode: int | None = None
) -> Path:
    """One figure of the statistics is `add` too large: of an episode in v2.1, of the whole set in v3.0."""
    source = sound(folder, layout)
    if episode is None:
        path = source / "meta/stats.json"
        stats = json.loads(path.read_text())
        stats[feature][statistic][0] += add
        path.write_text(json.dumps(stats))
        return source
    path = source / "meta/episodes_stats.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[episode]["stats"][feature][statistic][0] += add
    write_lines(path, lines)
    return source


def retasked(folder: Path, layout: str, tasks: list[str]) -> Path:
    """Another list of tasks; the rows use the first two."""
    source = sound(folder, layout)
    write_lines(source / "meta/tasks.jsonl", [{"task_index": n, "task": task} for n, task in enumerate(tasks)])
    change_info(source, total_tasks=len(tasks))
    return source


# --- other formats --------------------------------------------------------------------------------------------------


def hdf5_demonstrations(folder: Path) -> Path:
    """robomimic's layout, pictures rendered by robosuite: their colours are known, which way is up is not."""
    return hdf5_recordings.write_robomimic(folder / "demo.hdf5")


def hdf5_of_unknown_colours(folder: Path) -> Path:
    args = {**hdf5_recordings.ROBOSUITE_ARGS, "type": 3}  # no robosuite: nobody says who rendered the pictures
    return hdf5_recordings.write_robomimic(folder / "demo.hdf5", env_args=args)


def hdf5_gripper(folder: Path, closed: float, open: float) -> Path:  # noqa: A002
    """One demonstration that grasps half-way: the gripper is the last dimension of the action."""
    arrays = hdf5_recordings.robomimic_arrays(20)
    arrays["actions"][:, 6] = np.where(np.arange(20) < 10, open, closed)
    lang = json.dumps({"lang": "lift the cube"})
    hdf5_recordings.write_demo(folder / "demo.hdf5", "demo_0", arrays, ep_meta=lang)
    return hdf5_recordings.declare(folder / "demo.hdf5", env_args=hdf5_recordings.ROBOSUITE_ARGS)


def hdf5_empty(folder: Path) -> Path:
    return hdf5_recordings.declare(folder / "demo.hdf5", env_args=hdf5_recordings.ISAAC_ARGS)


def hdf5_failures(folder: Path, successes: list[bool]) -> Path:
    return hdf5_recordings.write_isaac(folder / "demo.hdf5", successes)


def rlds_of_equal_splits(folder: Path) -> Path:
    records = [rlds_recordings.record(episode, length) for episode, length in enumerate((8, 12))]
    return rlds_recordings.write_rlds(folder / "cart/1.0.0", {"train": [records], "val": [records]})


def bag_with_a_gap(folder: Path, begin_s: float, end_s: float) -> Path:
    sent = bag_recordings.demonstration(0, 40, has_joints=lambda at_s: not begin_s < at_s < end_s)
    return bag_recordings.write_bag(folder / "bag", sent)
