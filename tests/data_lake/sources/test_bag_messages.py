"""Messages as values: the bag's own types, ROS 2's where it has none, fields by path, joints by name."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from rosbags.interfaces import MessageDefinition, MessageDefinitionFormat
from rosbags.typesys import get_types_from_msg

from data_lake.sources.bag_files import Message
from data_lake.sources.bag_messages import JOINTS, Column, Types, stamp_ns
from data_lake.sources.files import Unreadable
from tests.data_lake.bag_recordings import START_NS, STORE, command, header, joints, of

ARRAY = "std_msgs/msg/Float64MultiArray"
POSE = "geometry_msgs/msg/PoseStamped"
OWN = "cart_msgs/msg/Gripper"
TEXT = "string name\nfloat64 width\nfloat32[2] force\ngeometry_msgs/Point[] tips\nuint8 OPEN=1\nstring SAYS='a;b'\n"
POINT = "================================================================================\nMSG: geometry_msgs/Point\n"


def defined(text: str) -> MessageDefinition:
    return MessageDefinition(MessageDefinitionFormat.MSG, text)


def sent(message: Any) -> Message:
    kind = message.__msgtype__
    return Message(topic="/x", msgtype=kind, log_ns=0, content=bytes(STORE.serialize_cdr(message, kind)))


def own(width: float) -> Any:
    if OWN not in STORE.types:
        STORE.register(get_types_from_msg(TEXT, OWN))
    tips = [of("geometry_msgs/msg/Point", x=1.0, y=2.0, z=3.0), of("geometry_msgs/msg/Point", x=4.0, y=5.0, z=6.0)]
    return of(OWN, name="left", width=width, force=np.array([7, 8], np.float32), tips=tips)


def refused(definitions: dict[str, MessageDefinition], used: str) -> str:
    with pytest.raises(Unreadable) as error:
        Types(definitions, (used,))
    assert error.value.code == "LAKE-121"
    return error.value.detail


def test_a_type_of_their_own_as_the_bag_defines_it() -> None:
    types = Types({OWN: defined(TEXT + POINT + "float64 x\nfloat64 y\nfloat64 z\n")}, (OWN,))
    message = types.decoded(sent(own(0.5)))
    values = {path: types.numbers(value, types.find(OWN, path)).tolist() for path, value in
              (("width", message.width), ("force", message.force), ("tips", message.tips))}  # fmt: skip
    assert values == {"width": [0.5], "force": [7, 8], "tips": [1, 2, 3, 4, 5, 6]}
    assert types.find(OWN, "name") is None and types.find(OWN, "width.x") is None and types.find(OWN, "") is None
    assert not types.has_header(OWN)


def test_what_nobody_defines() -> None:
    assert "none of ROS 2's own" in refused({}, OWN)
    assert Types({}, (ARRAY,)).find(ARRAY, "data") is not None


@pytest.mark.parametrize(
    "text",
    [
        "float64[99999999] values\n",  # a line of code each, for some types
        "cart_msgs/Gripper inner\n",  # in itself
        "cart_msgs/Nowhere inner\n",
        "float64 width\nfloat64 width\n",
        "float64 __class__\n",
        "float64 x = __import__('os').system('true')\n\x00",
        "this is no definition",
    ],
)
def test_definitions_that_are_none(text: str) -> None:
    assert OWN in refused({OWN: defined(text)}, OWN)


@pytest.mark.parametrize("name", ["cart_msgs/msg/A'+chr(1)+'", "cart_msgs/msg/0x", "cart_msgs/msg/A\nfloat64 x"])
def test_nothing_but_names_becomes_code(name: str) -> None:
    assert refused({name: defined("float64 width\n")}, name)


def test_headers_and_their_stamps() -> None:
    types = Types({}, (JOINTS, ARRAY))
    assert types.has_header(JOINTS) and not types.has_header(ARRAY)
    assert stamp_ns(header(1.5)) == START_NS + 1_500_000_000 and stamp_ns(header(None)) == 0


def test_a_message_that_is_not_of_its_type() -> None:
    whole = sent(command(0, (1, 2, 3)).message)
    for content in (b"", whole.content[:9], whole.content + b"12345678", b"\xff" * 40):
        with pytest.raises(Unreadable) as error:
            Types({}, (ARRAY,)).decoded(Message(topic="/x", msgtype=ARRAY, log_ns=0, content=content))
        assert error.value.code == "LAKE-121" and "/x" in error.value.detail


def test_a_nested_message_is_flattened_in_its_order() -> None:
    types = Types({}, (POSE,))
    point = of("geometry_msgs/msg/Point", x=1.0, y=2.0, z=3.0)
    turn = of("geometry_msgs/msg/Quaternion", x=4.0, y=5.0, z=6.0, w=7.0)
    message = of(POSE, header=header(0), pose=of("geometry_msgs/msg/Pose", position=point, orientation=turn))
    numbers_D, names = Column(declared="/pose.pose").values(types, POSE, types.decoded(sent(message)))
    assert numbers_D.tolist() == [1, 2, 3, 4, 5, 6, 7] and names[0] == "/pose.pose[0]"
    with pytest.raises(Unreadable) as error:
        Column(declared="/pose.header").values(types, POSE, message)
    assert error.value.code == "LAKE-122" and "header, pose" in error.value.detail


@pytest.mark.parametrize("inside", [0, 1, 2])
def test_joints_follow_the_first_message(inside: int) -> None:
    """Also those of a JointState inside another message."""
    kinds = [JOINTS, "my_msgs/msg/Arm", "my_msgs/msg/Robot"]
    definitions = {outer: f"{below} part\n" for below, outer in pairwise(kinds)}
    for name in (name for name in definitions if name not in STORE.types):
        STORE.register(get_types_from_msg(definitions[name], name))
    kind = kinds[inside]
    types = Types({kind: defined(STORE.generate_msgdef(kind, ros_version=2)[0])}, (kind,))

    def message_of(position: tuple[float, ...], order: tuple[str, ...]) -> Any:
        message = joints(0, position, order).message
        for outer in kinds[1 : inside + 1]:
            message = of(outer, part=message)
        return types.decoded(sent(message))

    path = ".".join(["part"] * inside + ["position"])
    column = Column(declared=f"/joint_states.{path}")
    _, names = column.values(types, kind, message_of((1, 2, 3), ("a", "b", "c")))
    column = Column(declared=column.declared, names=names)
    assert names == (f"a.{path}", f"b.{path}", f"c.{path}")

    def arranged(position: tuple[float, ...], order: tuple[str, ...]) -> list[float]:
        return column.arranged(*column.values(types, kind, message_of(position, order))).tolist()

    assert arranged((1, 2, 3), ("a", "b", "c")) == [1, 2, 3]
    assert arranged((3, 1, 2), ("c", "a", "b")) == [1, 2, 3]
    for position, order in (((1, 2, 3), ("a", "b", "d")), ((1, 2), ("a", "b")), ((), ("a", "b", "c")),
                            ((1, 2, 3, 4), ("a", "b", "c", "d")), ((1, 2, 3), ("a", "a", "b")),
                            ((1, 2, 3), ("a", "b"))):  # fmt: skip
        with pytest.raises(Unreadable) as error:
            arranged(position, order)
        assert error.value.code == "LAKE-127" and column.declared in error.value.detail
