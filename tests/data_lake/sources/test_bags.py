"""Bags as episodes: rows of what was newest, what a pause makes of them, what a bad bag costs."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

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
    words,
    write_bag,
    write_bags,
)
from tests.data_lake.bags_seen import SIMPLE, codes, columns, examined, frames, read
from tests.data_lake.crashing_ingest import SPEC
from tests.data_lake.recordings import TASKS
from tests.data_lake.seen import content, ingest


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
    assert "--set 'ingest.read.instruction==" in without.findings[0].fix


def test_parts_of_one_row_are_left_out_and_counted(tmp_path: Path) -> None:
    sent = [command(time, (time,)) for time in (0, 0.1, 0.2, 5.0, 9.0, 9.1)]
    first, second = read(write_bag(tmp_path / "bag", sent), replace(SIMPLE, max_age_s=0.05))
    assert [first.length, second.length] == [3, 2]
    assert "1 parts of less than 2 rows are left out" in first.findings[0].message
    (none,) = read(write_bag(tmp_path / "few", sent[3:5]), replace(SIMPLE, max_age_s=0.05))
    assert none.rows is None and codes(none) == ["LAKE-124", "LAKE-020"]


def test_a_value_may_be_as_old_as_allowed(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", [command(Fraction(number, 5), (number,)) for number in range(5)])
    (episode,) = read(bag, replace(SIMPLE, max_age_s=0.1))
    assert episode.length == 9 and codes(episode) == [] and episode.extra[f"worst_age_s {COMMAND}"] == 0.1
    (none,) = read(bag, replace(SIMPLE, max_age_s=0.099999999))
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
