"""Small bags written for tests, in both storages: joints, a commanded array, a camera and the words of a task."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from data_lake.specs import ReadSpec
from tests.data_lake.recordings import TASKS

STORE = get_typestore(Stores.ROS2_HUMBLE)
STORAGES = {"mcap": StoragePlugin.MCAP, "db3": StoragePlugin.SQLITE3}
START_NS = 1_700_000_000_000_000_000
JOINTS, COMMAND, FRONT, TASK = "/joint_states", "/command", "/camera/front/compressed", "/task"
READ = ReadSpec(
    fps="10",
    state=(f"{JOINTS}.position",),
    action=(f"{COMMAND}.data",),
    views={"front": FRONT},
    instruction=TASK,
    clock="log",
    max_age_s=0.15,
)


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A message of a topic: received log_s after START_NS."""

    topic: str
    log_s: float | Fraction
    message: Any = field(repr=False)


def of(msgtype: str, /, **fields: Any) -> Any:
    return STORE.types[msgtype](**fields)


def header(stamp_s: float | Fraction | None) -> Any:
    """stamp_s: after START_NS; None for a header that nobody filled."""
    total = 0 if stamp_s is None else START_NS + round(stamp_s * 10**9)
    stamp = of("builtin_interfaces/msg/Time", sec=total // 10**9, nanosec=total % 10**9)
    return of("std_msgs/msg/Header", stamp=stamp, frame_id="")


def joints(
    log_s: float | Fraction,
    position: Sequence[float],
    names: Sequence[str] = ("a", "b", "c"),
    stamp_s: float | Fraction | None = None,
    topic: str = JOINTS,
) -> Sent:
    message = of(
        "sensor_msgs/msg/JointState",
        header=header(stamp_s),
        name=list(names),
        position=np.array(position, np.float64),
        velocity=np.empty(0),
        effort=np.empty(0),
    )
    return Sent(topic=topic, log_s=log_s, message=message)


def command(log_s: float | Fraction, values: Sequence[float], topic: str = COMMAND) -> Sent:
    layout = of("std_msgs/msg/MultiArrayLayout", dim=[], data_offset=0)
    message = of("std_msgs/msg/Float64MultiArray", layout=layout, data=np.array(values, np.float64))
    return Sent(topic=topic, log_s=log_s, message=message)


def words(log_s: float | Fraction, text: str, topic: str = TASK) -> Sent:
    return Sent(topic=topic, log_s=log_s, message=of("std_msgs/msg/String", data=text))


def encoded(pixels: np.ndarray, kind: str = "PNG") -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, quality=95)
    return np.frombuffer(file.getvalue(), np.uint8)


def compressed(
    log_s: float | Fraction,
    pixels: np.ndarray,
    said: str = "png",
    kind: str = "PNG",
    stamp_s: float | Fraction | None = None,
    topic: str = FRONT,
) -> Sent:
    message = of("sensor_msgs/msg/CompressedImage", header=header(stamp_s), format=said, data=encoded(pixels, kind))
    return Sent(topic=topic, log_s=log_s, message=message)


def raw_image(pixels_HWC: np.ndarray, encoding: str, padding: int = 0) -> Any:
    """pixels_HWC: (H, W, C) uint8 in the order of `encoding`. padding: bytes behind each line."""
    height, width, channels = pixels_HWC.shape
    lines = np.pad(pixels_HWC.reshape(height, -1), ((0, 0), (0, padding)), constant_values=7)
    return of(
        "sensor_msgs/msg/Image",
        header=header(None),
        height=height,
        width=width,
        encoding=encoding,
        is_bigendian=0,
        step=width * channels + padding,
        data=lines.reshape(-1),
    )


def coloured(episode: int, number: int) -> np.ndarray:
    """(6, 8, 3): every picture of every episode has a colour of its own, the top-left pixel is red."""
    pixels = np.full((6, 8, 3), ((episode * 40) % 256, (number * 12) % 256, 128), np.uint8)
    pixels[0, 0] = (255, 0, 0)
    return pixels


def demonstration(
    episode: int,
    length: int,
    *,
    camera_hz: int = 10,
    joints_hz: int = 50,
    has_joints: Callable[[float], bool] = lambda _: True,
) -> list[Sent]:
    """`length` pictures; joints (time, episode, 1) and commands (time + 1, episode) five times as often. The first
    joints come with the first picture, the last with the last."""
    span = Fraction(length - 1, camera_hz)
    sent = [compressed(Fraction(number, camera_hz), coloured(episode, number)) for number in range(length)]
    sent.append(words(0, TASKS[episode % 2]))
    for number in range(int(span * joints_hz) + 1):
        time = Fraction(number, joints_hz)
        if has_joints(float(time)):
            sent.append(joints(time, (float(time), episode, 1)))
        sent.append(command(time, (float(time) + 1, episode)))
    return sent


def write_bag(folder: Path, sent: Sequence[Sent], storage: str = "mcap") -> Path:
    """A rosbag2 folder: messages in the order of their reception."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Writer(folder, version=9, storage_plugin=STORAGES[storage]) as writer:
        channels: dict[tuple[str, str], Any] = {}
        for each in sorted(sent, key=lambda item: item.log_s):
            kind = each.message.__msgtype__
            if (each.topic, kind) not in channels:
                channels[each.topic, kind] = writer.add_connection(each.topic, kind, typestore=STORE)
            content = STORE.serialize_cdr(each.message, kind)
            writer.write(channels[each.topic, kind], START_NS + round(each.log_s * 10**9), content)
    return folder


def write_bags(folder: Path, lengths: Sequence[int], storage: str = "mcap") -> Path:
    """A folder of bags, one per episode: bag_8, bag_9, bag_10, …"""
    for episode, length in enumerate(lengths):
        write_bag(folder / f"bag_{episode + 8}", demonstration(episode, length), storage)
    return folder


def split(folder: Path, parts: Sequence[Sequence[Sent]], storage: str = "mcap") -> Path:
    """One recording in several files without metadata.yaml, as rosbag2 splits it."""
    folder.mkdir(parents=True)
    for number, part in enumerate(parts):
        whole = write_bag(folder.parent / f"part_{number}", part, storage)
        (whole / f"part_{number}.{storage}").rename(folder / f"part_{number}.{storage}")
    return folder
