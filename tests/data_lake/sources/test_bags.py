"""Bags as episodes: what is declared and asked for, which clock counts, what a pause does, what a bad bag costs."""

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data_lake.examine import Examined, Tally, examine
from data_lake.sources.bags import RosBags
from data_lake.sources.episode import Episode, Pictures
from data_lake.specs import ReadSpec
from errors import UserError
from tests.data_lake.bag_recordings import (
    COMMAND,
    FRONT,
    JOINTS,
    READ,
    START_NS,
    TASK,
    Sent,
    coloured,
    command,
    compressed,
    demonstration,
    joints,
    raw_image,
    words,
    write_bag,
    write_bags,
)
from tests.data_lake.crashing_ingest import SPEC
from tests.data_lake.recordings import TASKS
from tests.data_lake.seen import content, ingest

CAMERA = "observation.images.front"
SIMPLE = ReadSpec(fps="10", state=(f"{COMMAND}.data",), action=(f"{COMMAND}.data",), instruction="=go", max_age_s=1.0)


def read(path: Path, spec: ReadSpec = READ) -> list[Episode]:
    return list(RosBags(path, spec).episodes())


def codes(episode: Episode) -> list[str]:
    return [item.code for item in episode.findings]


def columns(episode: Episode) -> dict[str, list[Any]]:
    assert episode.rows is not None, episode.findings
    return episode.rows.to_pydict()


def frames(episode: Episode, camera: str = CAMERA) -> list[np.ndarray]:
    view = episode.views[camera]
    assert isinstance(view, Pictures)
    return list(view.frames())


def examined(path: Path, spec: ReadSpec = READ) -> list[Examined]:
    return list(examine(RosBags(path, spec), workers=2, tally=Tally()))


def paused() -> list[Sent]:
    """D19: a 10 Hz camera and 50 Hz joints, of which those between 2 s and 3 s are missing."""
    return demonstration(0, 51, has_joints=lambda time: not 2.0 < time < 3.0)


@pytest.mark.parametrize("storage", ["mcap", "db3"])
def test_a_second_without_joints_cuts_the_recording(storage: str, tmp_path: Path) -> None:
    first, second = read(write_bag(tmp_path / "bag", paused(), storage))
    assert [first.length, second.length] == [22, 21], "rows 2.2 s to 2.9 s would hold joints older than 0.15 s"
    assert (codes(first), codes(second)) == (["LAKE-124"], [])
    assert "8 of 51 rows, /joint_states is up to 0.9 s old" in first.findings[0].message and first.findings[0].row == 22
    time_T = np.array(columns(first)["observation.state"])[:, 0]
    assert time_T == pytest.approx([*np.arange(21) / 10, 2.0])
    assert np.array(columns(second)["observation.state"])[:, 0] == pytest.approx(3 + np.arange(21) / 10)
    assert columns(second)["frame_index"] == list(range(21)) and set(columns(second)["episode_index"]) == {1}
    assert [first.extra["segment"], second.extra["segment"]] == [0, 1] and second.extra["bag"] == "bag"
    assert second.extra["start_ns"] - first.extra["start_ns"] == 3 * 10**9
    assert first.extra[f"worst_age_s {JOINTS}"] == 0.1 and second.extra[f"worst_age_s {JOINTS}"] == 0.0
    for number, image in enumerate(frames(second)):
        assert np.array_equal(image, coloured(0, 30 + number)), "pictures of the second part, not of the first"


def test_a_second_without_joints_is_marked(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", paused())
    (episode,) = read(bag, replace(READ, gaps="mark"))
    assert episode.length == 51 and codes(episode) == ["LAKE-125"]
    assert columns(episode)["gap"] == [22 <= row < 30 for row in range(51)]
    assert episode.extra[f"worst_age_s {JOINTS}"] == 0.9
    (seen,) = examined(bag, replace(READ, gaps="mark"))
    assert seen.rows is not None and seen.rows["gap"].to_pylist() == columns(episode)["gap"]


def test_each_row_holds_what_was_newest_then(tmp_path: Path) -> None:
    """Against a search through all messages, at a rate that fits none of them."""
    spec = replace(READ, fps="30000/1001", max_age_s=1.0)
    rng = np.random.default_rng(0)
    ticks = sorted(rng.choice(10_000, 200, replace=False).tolist())
    sent = [joints(Fraction(tick, 1000), (tick, 0, 0)) for tick in ticks[::2]]
    sent += [command(Fraction(tick, 1000), (tick,)) for tick in ticks[1::2]]
    sent += [compressed(Fraction(number, 7), coloured(0, number)) for number in range(60)] + [words(0, "go")]
    (episode,) = read(write_bag(tmp_path / "bag", sent), spec)
    first, last = ticks[1], min(ticks[-2], ticks[-1], 59_000 / 7)
    assert episode.extra["start_ns"] == START_NS + first * 10**6
    found = columns(episode)
    times = [first + Fraction(row * 1001 * 1000, 30000) for row in range(len(found["action"]))]
    assert times[-1] <= last < times[-1] + Fraction(1001 * 1000, 30000)
    assert [row[0] for row in found["observation.state"]] == [max(t for t in ticks[::2] if t <= time) for time in times]
    assert [row[0] for row in found["action"]] == [max(t for t in ticks[1::2] if t <= time) for time in times]
    places = [max(number for number in range(60) if Fraction(number * 1000, 7) <= time) for time in times]
    for image, number in zip(frames(episode), places, strict=True):
        assert np.array_equal(image, coloured(0, number))


def test_header_and_log_are_different_clocks(tmp_path: Path) -> None:
    """Joints arrive 0.4 s after they were measured, pictures at once."""
    spec = replace(READ, action=(f"{JOINTS}.position",), instruction="=go")
    sent = [joints(Fraction(number, 50) + Fraction(2, 5), (number, 0, 0), stamp_s=Fraction(number, 50))
            for number in range(100)]  # fmt: skip
    times = [Fraction(number, 10) for number in range(20)]
    sent += [compressed(time, coloured(0, number), stamp_s=time) for number, time in enumerate(times)]
    bag = write_bag(tmp_path / "bag", sent)
    (by_header,), (by_log,) = read(bag, replace(spec, clock="header")), read(bag, spec)
    assert [row[0] for row in columns(by_header)["action"]] == [5 * row for row in range(20)]
    assert [row[0] for row in columns(by_log)["action"]] == [5 * row for row in range(16)]
    assert (by_header.extra["start_ns"], by_log.extra["start_ns"]) == (START_NS, START_NS + 4 * 10**8)
    assert np.array_equal(frames(by_header)[10], coloured(0, 10)) and np.array_equal(
        frames(by_log)[10], coloured(0, 14)
    )


@pytest.mark.parametrize(("stamps", "place"), [((0.0, 0.1, None), 2), ((0.0, 0.2, 0.1), 2), ((None, 0.1, 0.2), 0)])
def test_stamps_that_are_none(stamps: Sequence[float | None], place: int, tmp_path: Path) -> None:
    spec = replace(SIMPLE, state=(f"{JOINTS}.position",), action=(f"{JOINTS}.position",), clock="header")
    sent = [joints(number / 10, (1, 2, 3), stamp_s=stamp) for number, stamp in enumerate(stamps)]
    bag = write_bag(tmp_path / "bag", sent)
    (episode,) = read(bag, spec)
    assert codes(episode) == ["LAKE-123"] and f"/joint_states, message {place}: " in episode.findings[0].message
    (episode,) = read(bag, replace(spec, clock="log"))
    assert episode.length == 3 and codes(episode) == []


def test_topics_without_a_header_beside_others(tmp_path: Path) -> None:
    spec = replace(READ, views={}, instruction="=go", clock="header")
    sent = [joints(number / 10, (1, 2, 3), stamp_s=number / 10) for number in range(9)]
    sent += [command(number / 10, (1,)) for number in range(9)]
    card = RosBags(write_bag(tmp_path / "bag", sent), spec).card
    assert [(item.code, COMMAND in item.message) for item in card.findings] == [("LAKE-129", True)]


@pytest.mark.parametrize(
    ("spec", "field", "words_said"),
    [
        (ReadSpec(), "state", "/joint_states (sensor_msgs/msg/JointState, 21 messages, 50 Hz)"),
        (replace(READ, state=("/arm.position",)), "state", "anything of '/arm.position'"),
        (replace(READ, state=(JOINTS,)), "state", "topic.field"),
        (replace(READ, state=(f"{JOINTS}.positon",)), "state", "header, name, position, velocity, effort"),
        (replace(READ, state=(f"{JOINTS}.name",)), "state", "no numbers"),
        (replace(READ, action=()), "action", "/command (std_msgs/msg/Float64MultiArray, 21 messages, 50 Hz)"),
        (replace(READ, views={}), "views", "front=/camera/front/compressed"),
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


def test_a_real_bag_of_numbers(shared_data: Path) -> None:
    """Five messages 100 ms apart, at 20 Hz; the other bags of the folder lack the topic and cost only themselves."""
    spec = replace(SIMPLE, state=("topic1.float64_value",), action=("topic1.int32_value",), fps="20", max_age_s=0.1)
    (episode,) = read(shared_data / "rosbag2/mcap-seek", spec)
    assert [row[0] for row in columns(episode)["action"]] == [1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert episode.extra["start_ns"] == 10**9 and episode.extra["worst_age_s topic1"] == 0.05
    every = read(shared_data / "rosbag2", spec)
    assert [item.extra["bag"] for item in every if item.rows is not None] == ["mcap-seek"]
    assert [codes(item) for item in every if item.rows is None] == [["LAKE-122"]] * 4
    assert columns(every[0])["action"] == columns(episode)["action"]


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


def test_an_instruction_holds_until_the_next(tmp_path: Path) -> None:
    sent = [command(number / 10, (number,)) for number in range(30)] + [words(0.55, "lift"), words(1.5, "place")]
    (episode,) = read(write_bag(tmp_path / "bag", sent), replace(SIMPLE, instruction=TASK))
    found = columns(episode)
    assert episode.instruction == "lift" and episode.extra["start_ns"] == START_NS + 550_000_000, (
        "rows know their words"
    )
    assert found["task"] == ["lift"] * 10 + ["place"] * 14
    assert [row[0] for row in found["action"]] == list(range(5, 29))


def test_a_bag_without_words_beside_others(tmp_path: Path) -> None:
    write_bag(tmp_path / "bags/one", [command(n / 10, (n,)) for n in range(5)] + [words(0, "go")])
    write_bag(tmp_path / "bags/two", [command(n / 10, (n,)) for n in range(5)])
    with_words, without = read(tmp_path / "bags", replace(SIMPLE, instruction=TASK))
    assert (codes(with_words), codes(without)) == ([], ["LAKE-024"])


def test_parts_of_one_row_are_left_out_and_counted(tmp_path: Path) -> None:
    sent = [command(time, (time,)) for time in (0, 0.1, 0.2, 5.0, 9.0, 9.1)]
    first, second = read(write_bag(tmp_path / "bag", sent), replace(SIMPLE, max_age_s=0.05))
    assert [first.length, second.length] == [3, 2]
    assert "1 parts of less than 2 rows are left out" in first.findings[0].message
    (none,) = read(write_bag(tmp_path / "few", sent[3:5]), replace(SIMPLE, max_age_s=0.05))
    assert none.rows is None and codes(none) == ["LAKE-124", "LAKE-020"]


def test_a_topic_that_ends_long_before_the_others(tmp_path: Path) -> None:
    sent = [command(number / 10, (number,)) for number in range(50)]
    sent += [joints(number / 10, (1, 2, 3)) for number in range(11)]
    (episode,) = read(write_bag(tmp_path / "bag", sent), replace(SIMPLE, state=(f"{JOINTS}.position",), clock="log"))
    assert episode.length == 11 and codes(episode) == ["LAKE-124"]
    assert "/joint_states ends 3.9 s before the last topic does" in episode.findings[0].message


def test_topics_that_are_not_there_at_once(tmp_path: Path) -> None:
    sent = [command(number / 10, (number,)) for number in range(5)] + [joints(n, (1, 2, 3)) for n in (7, 8)]
    (episode,) = read(write_bag(tmp_path / "bag", sent), replace(SIMPLE, state=(f"{JOINTS}.position",), clock="log"))
    assert codes(episode) == ["LAKE-122"] and "not there at the same time" in episode.findings[0].message


@pytest.mark.parametrize("storage", ["mcap", "db3"])
def test_a_damaged_bag_costs_only_itself(storage: str, tmp_path: Path) -> None:
    bags = write_bags(tmp_path / "bags", (8, 12, 10), storage)
    broken = bags / f"bag_9/bag_9.{storage}"
    broken.write_bytes(broken.read_bytes()[: broken.stat().st_size // 2])
    found = read(bags)
    assert [item.source_episode for item in found] == [0, 1, 2] and [item.length for item in found] == [8, None, 10]
    assert codes(found[1]) == ["LAKE-120"] and found[1].findings[0].file == f"bag_9/bag_9.{storage}"
    done = ingest(bags, tmp_path / "cart", replace(SPEC, format="rosbag2", read=READ))
    assert (done.num_episodes, done.num_quarantined, done.num_frames) == (2, 1, 18)


def test_only_damaged_bags(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", demonstration(0, 5))
    (bag / "bag.mcap").write_bytes(b"")
    (episode,) = read(bag, ReadSpec())
    assert codes(episode) == ["LAKE-120"]
    with pytest.raises(UserError, match="LAKE-120"):
        ingest(bag, tmp_path / "cart", replace(SPEC, format="auto", read=READ))


def test_pictures_that_are_not_known_are_said_of_their_camera(tmp_path: Path) -> None:
    odd = [
        Sent(topic=FRONT, log_s=n / 10, message=raw_image(coloured(0, n), "8UC3" if n == 3 else "bgr8"))
        for n in range(5)
    ]
    sent = [each for each in demonstration(0, 5) if each.topic != FRONT]
    (seen,) = examined(write_bag(tmp_path / "bag", [*sent, *odd]))
    (found,) = [item for item in seen.findings if item.severity == "error"]
    assert (found.code, found.camera, found.episode) == ("LAKE-126", CAMERA, 0)
    assert f"{FRONT}, message 3: encoding '8UC3'" in found.message and not seen.is_ok


def test_into_the_lake(tmp_path: Path) -> None:
    """D20: without a file per frame. The same bags in the other storage are the same episodes."""
    spec = replace(SPEC, format="auto", read=READ)
    done = ingest(write_bags(tmp_path / "mcap", (8, 12, 10)), tmp_path / "one", spec)
    other = ingest(write_bags(tmp_path / "db3", (8, 12, 10), "db3"), tmp_path / "two", spec)
    assert done.fingerprint == other.fingerprint and done.num_frames == 30 and done.findings == other.findings
    seen = content(tmp_path / "one")
    assert seen["counts"] == (3, 30, 3) and list(seen["tasks"]["task"]) == list(TASKS)
    assert seen["info"]["features"]["observation.state"]["names"] == ["a.position", "b.position", "c.position"]
    assert np.array(seen["frames"]["observation_state"])[:8, 0] == pytest.approx(np.arange(8) / 10)
    assert done.view["meaning"]["colour_order"] == "rgb" and done.view["meaning"]["fps"] == 10.0
    assert done.view["episodes"][1]["extra"][f"worst_age_s {FRONT}"] == 0.0
    assert ingest(tmp_path / "mcap", tmp_path / "one", spec).num_new == 0
    assert sum(1 for file in (tmp_path / "one").rglob("*") if file.is_file()) < 30


def peak(num_pictures: int, folder: Path) -> int:
    """Bytes of memory while a bag of raw pictures of 30 kB each is read, all of its frames included."""
    pixels = np.zeros((100, 100, 3), np.uint8)
    sent = [Sent(topic=FRONT, log_s=n / 10, message=raw_image(pixels, "bgr8")) for n in range(num_pictures)]
    sent += [command(n / 10, (n,)) for n in range(num_pictures)]
    source = RosBags(
        write_bag(folder / f"bag_{num_pictures}", sent, "db3"), replace(SIMPLE, views={"front": FRONT}, clock="log")
    )
    tracemalloc.start()
    for episode in source.episodes():
        view = episode.views[CAMERA]
        assert isinstance(view, Pictures) and sum(1 for _ in view.frames()) == num_pictures
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_memory_does_not_grow_with_pictures(tmp_path: Path) -> None:
    """D34."""
    peak(5, tmp_path)  # types are compiled once
    assert peak(200, tmp_path) - peak(20, tmp_path) < 1_000_000, "180 more pictures are 5.4 MB"
