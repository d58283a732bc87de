"""Messages of ROS 2 as values: types as the bag defines them, stamps, and numbers by the path of their field.

rosbags turns definitions into Python code, so nothing of a file reaches it but names of letters, digits and `_`.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from rosbags.interfaces import MessageDefinition, MessageDefinitionFormat, Nodetype
from rosbags.serde import SerdeError
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.base import TypesysError, normalize_fieldname

from data_lake.sources.bag_files import Message
from data_lake.sources.files import ODD, Unreadable, describe
from data_lake.sources.resample import NANOSECONDS

HEADER = "std_msgs/msg/Header"
JOINTS = "sensor_msgs/msg/JointState"
TEXT = "std_msgs/msg/String"
JOINT_FIELDS = ("position", "velocity", "effort")
MAX_ITEMS = 10_000  # rosbags writes a line of code per item of some arrays
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(/[A-Za-z][A-Za-z0-9_]*)*")
_IDL_RULE = "=" * 80 + "\n"
_TEXTS = ("string", "wstring")

Fields = list[tuple[str, Any]]
"""Name and rosbags' description of each field of a message."""


class Types:
    """The message types of one recording. `definitions` are the bag's own; a type that it does not define is taken
    as the newest ROS 2 defines it. Raises Unreadable LAKE-121 for one that neither knows."""

    def __init__(self, definitions: Mapping[str, MessageDefinition], used: Collection[str]) -> None:
        self._store = get_typestore(Stores.EMPTY)
        for name in sorted(set(used)):
            try:
                self._store.register(_defined(name, definitions))
                self._store.get_msgdef(name)
            except (*ODD, TypesysError, AssertionError, RecursionError, MemoryError) as error:
                raise Unreadable("LAKE-121", f"{name}: {describe(error)}") from error

    def fields(self, msgtype: str) -> Fields:
        return [(name, description) for name, description in self._store.fielddefs[msgtype][1]]

    def has_header(self, msgtype: str) -> bool:
        return ("header", (Nodetype.NAME, HEADER)) in self.fields(msgtype)

    def decoded(self, message: Message) -> Any:
        """Raises Unreadable LAKE-121."""
        try:
            return self._store.deserialize_cdr(message.content, message.msgtype)
        except (*ODD, SerdeError, IndexError, MemoryError) as error:
            raise Unreadable("LAKE-121", f"{message.topic}: {describe(error)}") from error

    def find(self, msgtype: str, path: str) -> Any:
        """The description of the field at `path`, None where there is none that holds only numbers."""
        description: Any = (Nodetype.NAME, msgtype)
        for part in path.split("."):
            fields = dict(self.fields(description[1])) if description[0] == Nodetype.NAME else {}
            if part not in fields:
                return None
            description = fields[part]
        return description if self._is_numeric(description) else None

    def numbers(self, value: Any, description: Any) -> np.ndarray:
        """(D,) float64: what a field holds, nested messages and arrays in their order."""
        kind, inner = description
        if kind == Nodetype.NAME:
            parts = [self.numbers(getattr(value, normalize_fieldname(name)), of) for name, of in self.fields(inner)]
            return np.concatenate([np.empty(0), *parts])
        if kind != Nodetype.BASE and inner[0][0] == Nodetype.NAME:
            return np.concatenate([np.empty(0), *(self.numbers(item, inner[0]) for item in value)])
        return np.asarray(value, np.float64).reshape(-1)

    def _is_numeric(self, description: Any) -> bool:
        kind, inner = description
        if kind == Nodetype.NAME:
            return all(self._is_numeric(of) for _, of in self.fields(inner))
        return self._is_numeric(inner[0]) if kind != Nodetype.BASE else inner[0] not in _TEXTS


def stamp_ns(header: Any) -> int:
    """Of a std_msgs/Header."""
    return header.stamp.sec * NANOSECONDS + header.stamp.nanosec


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """Numbers of one field of a topic, as declared: `/joint_states.position`.

    names: of its dimensions, in the source's first message; of a JointState the joints, also where it
    is inside another message.
    """

    declared: str
    names: tuple[str, ...] = ()

    @property
    def topic(self) -> str:
        return self.declared.partition(".")[0]

    @property
    def path(self) -> str:
        return self.declared.partition(".")[2]

    def values(self, types: Types, msgtype: str, message: Any) -> tuple[np.ndarray, tuple[str, ...]]:
        """(D,) float64 and the names of its dimensions. Raises Unreadable LAKE-122 for a field that is not there."""
        description = types.find(msgtype, self.path)
        if description is None:
            there = ", ".join(name for name, _ in types.fields(msgtype))
            raise Unreadable("LAKE-122", f"no numbers at {self.declared}; {msgtype} has {there}")
        *above, last = map(normalize_fieldname, self.path.split("."))
        owner = reduce(getattr, above, message)
        numbers_D = types.numbers(getattr(owner, last), description)
        if owner.__msgtype__ == JOINTS and last in JOINT_FIELDS:
            return numbers_D, tuple(f"{name}.{self.path}" for name in owner.name)
        return numbers_D, tuple(f"{self.declared}[{place}]" for place in range(len(numbers_D)))

    def arranged(self, numbers_D: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """`numbers_D` in the order of this column's names. Raises Unreadable LAKE-127 when they are others."""
        if tuple(names) == self.names and 0 < len(numbers_D) == len(names):
            return numbers_D
        if len(numbers_D) != len(self.names) or not len(numbers_D):
            detail = f"{self.declared} has {len(numbers_D)} numbers, {len(self.names)} in the first message"
            raise Unreadable("LAKE-127", detail)
        if set(names) != set(self.names) or len(names) != len(self.names):
            raise Unreadable("LAKE-127", f"{self.declared} is {_few(names)}, in the first message {_few(self.names)}")
        place = {name: number for number, name in enumerate(names)}
        return numbers_D[[place[name] for name in self.names]]


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "")


def _defined(msgtype: str, definitions: Mapping[str, MessageDefinition]) -> dict[str, Any]:
    """The fields of a type and of those inside it. Raises TypesysError, or one of ODD."""
    if msgtype in definitions:
        types = _parsed(msgtype, definitions[msgtype])
    else:
        known = get_typestore(Stores.LATEST).fielddefs
        if msgtype not in known:
            raise TypesysError("the bag does not define it, and it is none of ROS 2's own")
        types = {name: known[name] for name in _inside(msgtype, known)}
    # constants are not needed to read a message
    return {name: ([], list(_checked(name, fields))) for name, (_, fields) in types.items()}


def _parsed(msgtype: str, definition: MessageDefinition) -> dict[str, Any]:
    if definition.format == MessageDefinitionFormat.MSG:
        return get_types_from_msg(definition.data, msgtype)
    types: dict[str, Any] = {}
    if not definition.data.startswith(f"{_IDL_RULE}IDL: "):
        return get_types_from_idl(definition.data)
    for part in definition.data.split(_IDL_RULE)[1:]:
        types |= get_types_from_idl(part.partition("\n")[2])
    return types


def _checked(msgtype: str, fields: Fields) -> Iterator[tuple[str, Any]]:
    """The fields of a type; raises ValueError for a name that is none, or an array too long to be meant."""
    for name, description in fields:
        kind, inner = description
        item = description if kind in (Nodetype.BASE, Nodetype.NAME) else inner[0]
        names = (msgtype, name, item[1] if item[0] == Nodetype.NAME else "base")
        if not all(_NAME.fullmatch(each) for each in names):
            raise ValueError(f"{name!r} is no field of {msgtype!r}")
        if kind == Nodetype.ARRAY and inner[1] > MAX_ITEMS:
            raise ValueError(f"{name} has {inner[1]:,} items")
        yield name, description


def _inside(msgtype: str, known: Mapping[str, Any]) -> set[str]:
    """`msgtype` and every type that its fields are made of."""
    found, waiting = set(), [msgtype]
    while waiting:
        name = waiting.pop()
        found.add(name)
        for _, (kind, inner) in known[name][1]:
            item = (kind, inner) if kind in (Nodetype.BASE, Nodetype.NAME) else inner[0]
            if item[0] == Nodetype.NAME and item[1] not in found:
                waiting.append(item[1])
    return found
