"""TFRecord files without TensorFlow: each record with both of its checksums, and the tf.train.Example in it.

Format: https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details (length, its masked CRC32C,
content, its masked CRC32C); messages: tensorflow/core/example/{example,feature}.proto.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from crc32c import crc32c
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from data_lake.sources.files import Unreadable, describe, ensure_present

HEAD, TAIL = struct.Struct("<QI"), struct.Struct("<I")


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """offset: byte of its file at which it begins. content: None where it does not match its checksum."""

    offset: int
    content: bytes | None


def records(path: Path) -> Iterator[Record]:
    """The records of a file, one in memory at a time.

    Raises Unreadable: LAKE-009 or LAKE-008 for a file that is not there, LAKE-112 where no more can be found.
    """
    ensure_present(path, "LAKE-009")
    try:
        with path.open("rb") as file:
            while (record := _next(file)) is not None:
                yield record
    except OSError as error:
        raise Unreadable("LAKE-112", describe(error)) from error


def content_at(path: Path, offset: int) -> bytes:
    """The content of the record that begins at byte `offset`. Raises Unreadable as `records` does, and LAKE-111."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            record = _next(file)
    except OSError as error:
        raise Unreadable("LAKE-112", describe(error)) from error
    if record is None or record.content is None:
        raise Unreadable("LAKE-111", f"at byte {offset:,}")
    return record.content


def _next(file: BinaryIO) -> Record | None:
    """A length is believed only if its checksum agrees: without it nobody knows where the next record begins."""
    offset = file.tell()
    head = file.read(HEAD.size)
    if not head:
        return None
    if len(head) < HEAD.size:
        raise Unreadable("LAKE-112", f"the file ends inside the record at byte {offset:,}")
    length, checksum = HEAD.unpack(head)
    if checksum != masked_crc32c(head[:8]):
        raise Unreadable("LAKE-112", f"the length at byte {offset:,} does not match its checksum")
    if length + TAIL.size > os.fstat(file.fileno()).st_size - file.tell():
        raise Unreadable("LAKE-112", f"the file ends inside the record at byte {offset:,}")
    content = file.read(length)
    is_whole = TAIL.unpack(file.read(TAIL.size))[0] == masked_crc32c(content)
    return Record(offset=offset, content=content if is_whole else None)


def masked_crc32c(content: bytes) -> int:
    """CRC32C turned by 15 bits plus a constant, as TFRecord keeps it: a checksum of checksums stays telling."""
    crc = crc32c(content)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def example(content: bytes) -> dict[str, np.ndarray | list[bytes]]:
    """The features of a serialised tf.train.Example by name: float32 (N,), int64 (N,) or bytes, N of them.

    Raises Unreadable LAKE-114 when it is none.
    """
    message = _EXAMPLE()
    try:
        message.ParseFromString(content)
    except DecodeError as error:
        raise Unreadable("LAKE-114", "it is no tf.train.Example") from error
    return {entry.key: _values(entry.value) for entry in message.features.feature}


def _values(feature: Any) -> np.ndarray | list[bytes]:
    if feature.HasField("float_list"):
        return np.array(feature.float_list.value, np.float32)
    if feature.HasField("int64_list"):
        return np.array(feature.int64_list.value, np.int64)
    return list(feature.bytes_list.value)


def _example_class() -> type[Any]:
    """The message class, in a pool of its own: TensorFlow's would clash with it.

    A map is on the wire a repeated message of key and value, the oneof of a feature three optional messages.
    """
    messages: dict[str, tuple[tuple[str, str | int, bool], ...]] = {  # name: fields (name, type, repeated)
        "BytesList": (("value", FieldDescriptorProto.TYPE_BYTES, True),),
        "FloatList": (("value", FieldDescriptorProto.TYPE_FLOAT, True),),
        "Int64List": (("value", FieldDescriptorProto.TYPE_INT64, True),),
        "Feature": (("bytes_list", "BytesList", False), ("float_list", "FloatList", False),
                    ("int64_list", "Int64List", False)),
        "Entry": (("key", FieldDescriptorProto.TYPE_STRING, False), ("value", "Feature", False)),
        "Features": (("feature", "Entry", True),),
        "Example": (("features", "Features", False),),
    }  # fmt: skip
    schema = FileDescriptorProto(name="example.proto", package="tfrecord", syntax="proto3")
    for name, fields in messages.items():
        message = schema.message_type.add(name=name)
        for number, (field, kind, is_repeated) in enumerate(fields, start=1):
            message.field.add(
                name=field,
                number=number,
                label=FieldDescriptorProto.LABEL_REPEATED if is_repeated else FieldDescriptorProto.LABEL_OPTIONAL,
                type=FieldDescriptorProto.TYPE_MESSAGE if isinstance(kind, str) else kind,
                type_name=f".tfrecord.{kind}" if isinstance(kind, str) else None,
            )
    pool = DescriptorPool()
    pool.Add(schema)
    return GetMessageClass(pool.FindMessageTypeByName("tfrecord.Example"))


_EXAMPLE = _example_class()
