"""Pictures of ROS messages as RGB: sensor_msgs/Image and CompressedImage, each as it says of itself.

Encodings: https://github.com/ros2/common_interfaces (sensor_msgs/image_encodings.hpp); the form of `format`:
compressed_image_transport of ros-perception/image_transport_plugins.
"""

from typing import Any

import numpy as np

from data_lake.sources.files import Unreadable
from data_lake.sources.stills import decoded

RAW, COMPRESSED = "sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"
CHANNELS = {"rgb8": (0, 1, 2), "bgr8": (2, 1, 0), "rgba8": (0, 1, 2, 3), "bgra8": (2, 1, 0, 3), "mono8": (0,)}
"""Where red, green, blue (and alpha, which is dropped) stand in a pixel."""


def rgb(msgtype: str, message: Any) -> np.ndarray:
    """(H, W, 3) uint8. Raises Unreadable: LAKE-126 for an encoding that is not known, LAKE-031 for broken bytes."""
    return _raw(message) if msgtype == RAW else _compressed(message)


def _raw(message: Any) -> np.ndarray:
    order = CHANNELS.get(message.encoding)
    if order is None:
        raise Unreadable("LAKE-126", f"encoding {message.encoding!r}")
    width_bytes = message.width * len(order)
    if (
        message.step < width_bytes
        or len(message.data) < message.step * message.height
        or not message.height * message.width
    ):
        size = f"{message.height} lines of {message.step} bytes for {message.width} pixels of {message.encoding}"
        raise Unreadable("LAKE-031", f"{size} in {len(message.data)} bytes")
    lines = message.data[: message.step * message.height].reshape(message.height, message.step)
    pixels = lines[:, :width_bytes].reshape(message.height, message.width, len(order))
    return np.ascontiguousarray(pixels[:, :, order[:3] if len(order) > 1 else (0, 0, 0)])


def _compressed(message: Any) -> np.ndarray:
    is_swapped = _is_swapped(message.format)
    name = f"the picture of format {message.format!r}"
    pixels = decoded(message.data, name, modes=("RGB", "RGBA", "L"), unknown="LAKE-126")
    return np.ascontiguousarray(pixels[:, :, ::-1] if is_swapped else pixels)


def _is_swapped(said: str) -> bool:
    """Whether red and blue are exchanged in the file, as the publisher's `format` says.

    `jpeg` and `png` alone are as any viewer shows them, and so is `rgb8; jpeg compressed bgr8`: OpenCV's encoder was
    given the BGR it expects. After `compressed rgb8` it was given RGB. Colour without either word is not settled.
    """
    encoding, behind, coding = said.partition(";")
    if not behind or encoding.strip() == "mono8" or "compressed bgr" in coding:
        return False
    if encoding.strip() not in CHANNELS or "compressed rgb" not in coding:
        raise Unreadable("LAKE-126", f"format {said!r}")
    return True
