"""Small RLDS data sets written for tests byte by byte: no TensorFlow, no protobuf, no checksum of a library."""

import io
import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from data_lake.examine import Examined, Tally, examine
from data_lake.sources.rlds import RldsFolder
from data_lake.specs import ReadSpec
from tests.data_lake.recordings import TASKS, colour

SIZE = 16
Values = np.ndarray | Sequence[bytes]
Record = dict[str, Values]


def crc32c(content: bytes) -> int:
    """Bit by bit, from the polynomial (RFC 3720, B.4)."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(content: bytes) -> bytes:
    crc = crc32c(content)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32)


def framed(content: bytes) -> bytes:
    length = struct.pack("<Q", len(content))
    return length + masked(length) + content + masked(content)


def varint(value: int) -> bytes:
    value %= 2**64
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def field(number: int, payload: bytes) -> bytes:
    """A field of the protobuf wire type 2: with its length."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def feature(values: Values) -> bytes:
    """A tf.train.Feature: 1 is a list of bytes, 2 of floats, 3 of integers."""
    if not isinstance(values, np.ndarray):
        return field(1, b"".join(field(1, value) for value in values))
    if values.dtype.kind == "f":
        return field(2, field(1, values.astype("<f4").tobytes()))
    return field(3, field(1, b"".join(varint(int(value)) for value in values.reshape(-1))))


def example(record: Mapping[str, Values]) -> bytes:
    entries = [field(1, field(1, key.encode()) + field(2, feature(values))) for key, values in record.items()]
    return field(1, b"".join(entries))


def encoded(pixels: np.ndarray, kind: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def tensor(shape: Sequence[int] = (), dtype: str = "float32", **more: Any) -> dict[str, Any]:
    shown = {"dimensions": [str(size) for size in shape]} if shape else {}
    return {"tensor": {"shape": shown, "dtype": dtype, "encoding": "none", **more}}


def image(shape: Sequence[int] = (SIZE, SIZE, 3), dtype: str = "uint8", kind: str = "jpeg") -> dict[str, Any]:
    dimensions = [str(size) for size in shape]
    return {"image": {"shape": {"dimensions": dimensions}, "dtype": dtype, "encodingFormat": kind}}


def tree(**features: Any) -> dict[str, Any]:
    return {"featuresDict": {"features": features}}


def sequence(of: Any) -> dict[str, Any]:
    return {"sequence": {"feature": of, "length": "-1"}}


TEXT: dict[str, Any] = {"text": {}}


def features(observation: Mapping[str, Any] | None = None, **steps: Any) -> dict[str, Any]:
    """features.json with what is given put in place of, or beside, the usual; None leaves out."""
    seen = {"state": tensor((3,)), "front": image(), "wrist": image(kind="png"), **(observation or {})}
    usual = {
        "observation": tree(**{name: value for name, value in seen.items() if value is not None}),
        "action": tensor((2,)),
        "language_instruction": TEXT,
        "language_embedding": tensor((4,)),
        "is_last": tensor(dtype="bool"),
        "reward": tensor(),
        **steps,
    }
    said = tree(file_path=TEXT, has_wrist=tensor(dtype="bool"), number=tensor(dtype="int32"))
    step = tree(**{name: value for name, value in usual.items() if value is not None})
    return tree(steps=sequence(step), episode_metadata=said)


def pixels(episode: int, frame: int) -> np.ndarray:
    """Random, below a flat top: JPEG cannot keep it, so a decoder's own way shows."""
    noise = np.random.default_rng(1000 * episode + frame).integers(0, 256, (SIZE, SIZE, 3), np.uint8)
    noise[: SIZE // 2] = colour(episode, frame)
    return noise


def record(episode: int, length: int, **changes: Any) -> Record:
    """One episode as TFDS flattens it. changes: by path with `__` for slashes; None leaves out."""
    frame = np.arange(length)
    state = np.stack([frame * 0.5, np.full(length, episode), np.ones(length)], axis=1).astype(np.float32)
    usual: Record = {
        "steps/observation/state": state.reshape(-1),
        "steps/observation/front": [encoded(pixels(episode, number), "JPEG") for number in range(length)],
        "steps/observation/wrist": [encoded(pixels(episode + 50, number), "PNG") for number in range(length)],
        "steps/action": (state[:, :2] + 1).reshape(-1),
        "steps/language_instruction": [TASKS[episode % 2].encode()] * length,
        "steps/language_embedding": np.zeros(4 * length, np.float32),
        "steps/is_last": (frame == length - 1).astype(np.int64),
        "steps/reward": np.zeros(length, np.float32),
        "episode_metadata/file_path": [f"raw/{episode}.npy".encode()],
        "episode_metadata/has_wrist": np.array([1]),
        "episode_metadata/number": np.array([-episode]),
    }
    whole = usual | {path.replace("__", "/"): values for path, values in changes.items()}
    return {path: values for path, values in whole.items() if values is not None}


def write_rlds(
    root: Path, splits: Mapping[str, Sequence[Sequence[Record]]], declared: Mapping[str, Any] | None = None
) -> Path:
    """A version folder. splits: by name the records of each shard."""
    root.mkdir(parents=True)
    listed = []
    for split, shards in splits.items():
        listed.append({"name": split, "numBytes": "1", "shardLengths": [str(len(records)) for records in shards]})
        for number, records in enumerate(shards):
            content = b"".join(framed(example(record)) for record in records)
            shard_path(root, split, number, len(shards)).write_bytes(content)
    template = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
    info = {
        "name": "cart",
        "version": "1.0.0",
        "fileFormat": "tfrecord",
        "splits": [{**split, "filepathTemplate": template} for split in listed],
    }
    (root / "dataset_info.json").write_text(json.dumps(info))
    (root / "features.json").write_text(json.dumps(declared or features()))
    return root


def shard_path(root: Path, split: str = "train", number: int = 0, count: int = 1) -> Path:
    return root / f"cart-{split}.tfrecord-{number:05d}-of-{count:05d}"


def change_info(root: Path, **values: Any) -> None:
    path = root / "dataset_info.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


LENGTHS = (4, 6, 5)


def three(**changes: Any) -> list[Record]:
    """Episodes 0 to 2; `changes` in episode 1."""
    return [record(number, length, **(changes if number == 1 else {})) for number, length in enumerate(LENGTHS)]


def one_shard(root: Path, records: Sequence[Record], declared: dict[str, Any] | None = None) -> Path:
    return write_rlds(root / "cart/1.0.0", {"train": [records]}, declared)


def examined(root: Path, **read: Any) -> list[Examined]:
    return list(examine(RldsFolder(root, ReadSpec(fps="10", **read)), workers=2, tally=Tally()))


def bad(found: Sequence[Examined]) -> dict[int, set[str]]:
    """Codes of the episodes that are left out."""
    return {each.episode.source_episode: {item.code for item in each.findings} for each in found if not each.is_ok}
