"""What is declared of bags becomes columns, views and words; what is not is asked for, with the topics there are."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from data_lake.sources.bags import RosBags
from data_lake.specs import ReadSpec
from errors import UserError
from tests.data_lake.bag_recordings import (
    COMMAND,
    JOINTS,
    READ,
    command,
    demonstration,
    joints,
    write_bag,
)
from tests.data_lake.bags_seen import SIMPLE, codes, columns, read


@pytest.mark.parametrize(
    ("spec", "field", "words_said"),
    [
        (ReadSpec(), "state", "/joint_states (sensor_msgs/msg/JointState, 21 messages, 50 Hz)"),
        (replace(READ, state=("/arm.position",)), "state", "anything of '/arm.position'"),
        (replace(READ, state=(JOINTS,)), "state", "topic.field"),
        (replace(READ, state=(f"{JOINTS}.positon",)), "state", "header, name, position, velocity, effort"),
        (replace(READ, state=(f"{JOINTS}.name",)), "state", "no numbers"),
        (replace(READ, action=()), "action", "/command (std_msgs/msg/Float64MultiArray, 21 messages, 50 Hz)"),
        (replace(READ, views={}), "views", '{"front": "/camera/front/compressed"}'),
        (replace(READ, views={"front": COMMAND}), "views", "any pictures under '/command'"),
        (replace(READ, instruction=None), "instruction", "/task (std_msgs/msg/String, 1 message)"),
        (replace(READ, instruction=JOINTS), "instruction", "under '/joint_states'"),
        (replace(READ, clock=None), "clock", '"header"'),
        (replace(READ, fps=None), "fps", "5 messages, 10 Hz"),
        (replace(READ, fps="ten"), "fps", "'ten'"),
        (replace(READ, fps="-5"), "fps", "'-5'"),
        (replace(READ, max_age_s=None), "max_age_s", "0.15 (1.5 periods of its slowest topic, /camera/front"),
        (replace(READ, max_age_s=-1.0), "max_age_s", "0.15"),
        (replace(READ, max_age_s=float("nan")), "max_age_s", "0.15"),
    ],
)  # fmt: skip
def test_what_is_not_declared_is_asked_for(spec: ReadSpec, field: str, words_said: str, tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", demonstration(0, 5))
    with pytest.raises(UserError) as asked:
        RosBags(bag, spec)
    assert asked.value.code == "LAKE-035" and f"ingest.read.{field} " in asked.value.next_step
    assert words_said in str(asked.value)


def test_the_question_tells_of_all_bags(tmp_path: Path) -> None:
    """Counts summed up, and the slowest mean rate."""
    for name, rate_hz in (("one", 20), ("two", 5), ("three", 10)):
        write_bag(tmp_path / "bags" / name, [command(Fraction(number, rate_hz), (1,)) for number in range(11)])
    with pytest.raises(UserError, match=r"/command \(std_msgs/msg/Float64MultiArray, 33 messages, 5 Hz\)"):
        RosBags(tmp_path / "bags")


def test_without_headers_there_is_one_clock(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", [command(number / 10, (number,)) for number in range(9)])
    (episode,) = read(bag, SIMPLE)
    assert columns(episode)["action"] == [[number] for number in range(9)] and episode.views == {}


def test_real_bags_say_what_they_hold(shared_data: Path) -> None:
    said = []
    for name in ("mcap-talker", "sqlite3-talker"):
        with pytest.raises(UserError) as asked:
            RosBags(shared_data / "rosbag2" / name)
        said.append(asked.value.next_step)
    assert said[0] == said[1] and "/topic (std_msgs/msg/String, 10 messages, 1.99 Hz)" in said[0]


def test_joints_in_another_order_in_another_bag(tmp_path: Path) -> None:
    spec = replace(SIMPLE, state=(f"{JOINTS}.position",), action=(f"{JOINTS}.position",), clock="log")
    orders = {"bag_1": ("a", "b", "c"), "bag_2": ("c", "a", "b"), "bag_3": ("a", "b", "d")}
    value = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    for name, order in orders.items():
        write_bag(
            tmp_path / "bags" / name, [joints(n / 10, [value[joint] for joint in order], order) for n in range(5)]
        )
    source = RosBags(tmp_path / "bags", spec)
    assert source.card.features["observation.state"].names == ["a.position", "b.position", "c.position"]
    first, second, third = source.episodes()
    assert columns(first)["action"] == columns(second)["action"] == [[1, 2, 3]] * 5
    assert codes(third) == ["LAKE-127"] and "a.position, b.position, d.position" in third.findings[0].message


def test_columns_are_concatenated_in_the_declared_order(tmp_path: Path) -> None:
    spec = replace(SIMPLE, state=(f"{COMMAND}.data", f"{JOINTS}.position", f"{COMMAND}.data"), clock="log")
    sent = [command(n / 10, (8, 9)) for n in range(5)] + [joints(n / 10, (1, 2, 3)) for n in range(5)]
    source = RosBags(write_bag(tmp_path / "bag", sent), spec)
    (episode,) = source.episodes()
    assert columns(episode)["observation.state"] == [[8, 9, 1, 2, 3, 8, 9]] * 5
    assert source.card.features["observation.state"].shape == (7,)


def test_topics_without_a_header_beside_others(tmp_path: Path) -> None:
    spec = replace(READ, views={}, instruction="=go", clock="header")
    sent = [joints(number / 10, (1, 2, 3), stamp_s=number / 10) for number in range(9)]
    sent += [command(number / 10, (1,)) for number in range(9)]
    card = RosBags(write_bag(tmp_path / "bag", sent), spec).card
    assert [(item.code, COMMAND in item.message) for item in card.findings] == [("LAKE-129", True)]
