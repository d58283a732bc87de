"""The containers: real bags of rosbag2 and written ones, whole, split, compressed and damaged."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

from data_lake.sources.bag_files import is_recording, recordings_in, survey
from data_lake.sources.files import Unreadable
from tests.data_lake.bag_recordings import COMMAND, JOINTS, START_NS, STORE, command, joints, split, write_bag

SENT = [command(number / 10, (number,)) for number in range(30)] + [joints(1, (1, 2, 3))]


def times(path: Path, topic: str) -> list[int]:
    return [message.log_ns for message in survey(path).messages((topic,))]


def test_a_real_recording_in_both_storages(shared_data: Path) -> None:
    mcap, sqlite = (survey(shared_data / "rosbag2" / name) for name in ("mcap-talker", "sqlite3-talker"))
    assert mcap.topics == sqlite.topics and list(mcap.topics) == ["/parameter_events", "/rosout", "/topic"]
    assert str(mcap.topics["/topic"]) == "/topic (std_msgs/msg/String, 10 messages, 1.99 Hz)"
    assert str(mcap.topics["/parameter_events"]).endswith("ParameterEvent, 0 messages)")
    both = [list(each.messages(("/topic", "/rosout"))) for each in (mcap, sqlite)]
    assert both[0] == both[1] and len(both[0]) == 20
    assert both[0][0].log_ns == 1585866235112411371 and both[0][-1].log_ns == 1585866239643508139


def test_a_real_split_recording_without_metadata(shared_data: Path) -> None:
    recording = survey(shared_data / "rosbag2/mcap-split-no-metadata")
    assert [file.name for file in recording.files] == [f"multiple_files_{number}.mcap" for number in range(3)]
    stamps = [message.log_ns for message in recording.messages(("/chatter",))]
    assert len(stamps) == recording.topics["/chatter"].count == 1324 + 1324 + 529
    assert stamps == sorted(stamps)


def test_real_steps_of_100_ms(shared_data: Path) -> None:
    recording = survey(shared_data / "rosbag2/mcap-seek")
    assert recording.topics["topic1"].msgtype == "test_msgs/msg/BasicTypes", "written as test_msgs/BasicTypes"
    assert recording.topics["topic1"].rate_hz == pytest.approx(10)
    every = [10**9 + number * 10**8 for number in range(5)]
    assert [message.log_ns for message in recording.messages(("topic1",))] == every
    some = recording.messages(("topic1",), start_ns=every[1], stop_ns=every[3])
    assert [message.log_ns for message in some] == every[1:3]


def test_a_real_bag_without_messages(shared_data: Path) -> None:
    recording = survey(shared_data / "rosbag2/sqlite3-empty")
    assert recording.unreadable is None
    assert {name: topic.count for name, topic in recording.topics.items()} == {"/parameter_events": 0, "/rosout": 0}
    assert list(recording.messages(recording.topics)) == []


@pytest.mark.parametrize("storage", ["mcap", "db3"])
def test_a_file_a_folder_and_a_folder_without_metadata(storage: str, tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", SENT, storage).rename(tmp_path / "bag #1?")
    file = bag / f"bag.{storage}"
    expected = times(bag, COMMAND)
    assert expected == [START_NS + round(number / 10 * 10**9) for number in range(30)]
    assert is_recording(file) and times(file, COMMAND) == expected
    (bag / "metadata.yaml").unlink()
    assert is_recording(bag) and times(bag, COMMAND) == expected
    assert survey(bag).topics[COMMAND].count == 30 and survey(bag).topics[COMMAND].rate_hz == pytest.approx(10)


@pytest.mark.parametrize("storage", ["mcap", "db3"])
def test_parts_in_natural_order(storage: str, tmp_path: Path) -> None:
    parts = [[command(number, (number,))] for number in range(11)]
    stamps = times(split(tmp_path / "bag", parts, storage), COMMAND)
    assert stamps == sorted(stamps) and len(stamps) == 11, "part_10 is after part_9"


def test_bags_in_natural_order_and_nothing_else(tmp_path: Path) -> None:
    for name in ("demo_10", "demo_9", ".hidden"):
        write_bag(tmp_path / name, SENT)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/metadata.yaml").write_text("of: something else")
    assert [path.name for path in recordings_in(tmp_path)] == ["demo_9", "demo_10"]
    assert not is_recording(tmp_path)


@pytest.mark.parametrize("mode", [CompressionMode.FILE, CompressionMode.MESSAGE, CompressionMode.STORAGE])
def test_compressed_bags(mode: CompressionMode, tmp_path: Path) -> None:
    """Chunks of MCAP are unpacked; what rosbag2 packs around the storage has to be unpacked by it."""
    writer = Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP)
    writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        channel = writer.add_connection(COMMAND, "std_msgs/msg/Float64MultiArray", typestore=STORE)
        for each in SENT[:30]:
            content = STORE.serialize_cdr(each.message, channel.msgtype)
            writer.write(channel, START_NS + round(each.log_s * 10**9), content)
    recording = survey(tmp_path / "bag")
    if mode == CompressionMode.STORAGE:
        assert len(list(recording.messages((COMMAND,)))) == 30
    else:
        assert recording.unreadable is not None and recording.unreadable.code == "LAKE-120"
        assert f"compressed it by {mode.name.lower()}" in recording.unreadable.detail


def test_metadata_that_differs_from_the_files(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", SENT)
    (bag / "bag_more.mcap").write_bytes((bag / "bag.mcap").read_bytes())
    assert [item.code for item in survey(bag).findings] == ["LAKE-128"] and len(times(bag, COMMAND)) == 30
    (bag / "metadata.yaml").write_text("rosbag2_bagfile_information: [")
    assert [item.code for item in survey(bag).findings] == ["LAKE-128"] and len(times(bag, COMMAND)) == 60


def test_a_part_that_is_missing(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", SENT)
    (bag / "bag.mcap").rename(bag / "else.mcap")
    error = survey(bag).unreadable
    assert error is not None and (error.code, error.detail) == ("LAKE-009", "bag.mcap")


def test_listed_files_are_looked_for_in_the_bag_only(tmp_path: Path) -> None:
    outside = write_bag(tmp_path / "outside", SENT) / "outside.mcap"
    bag = write_bag(tmp_path / "bag", SENT)
    metadata = (bag / "metadata.yaml").read_text().replace("bag.mcap", f"../outside/{outside.name}")
    (bag / "metadata.yaml").write_text(metadata)
    error = survey(bag).unreadable
    assert error is not None and error.code == "LAKE-009"


def test_a_write_ahead_log_that_nobody_merged(tmp_path: Path) -> None:
    """Its messages would be left out without a word."""
    bag = write_bag(tmp_path / "bag", SENT, "db3")
    with sqlite3.connect(bag / "bag.db3") as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("INSERT INTO messages (topic_id, timestamp, data) VALUES (1, 1, x'00')")
        database.commit()
        error = survey(bag).unreadable
    assert error is not None and error.code == "LAKE-120" and "bag.db3-wal" in error.detail


def test_a_git_lfs_pointer(tmp_path: Path) -> None:
    (tmp_path / "bag.mcap").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    error = survey(tmp_path / "bag.mcap").unreadable
    assert error is not None and error.code == "LAKE-008"


def read(file: Path, content: bytes) -> int | Unreadable:
    """How many messages come of a file with this content, or what is said of it."""
    file.write_bytes(content)
    recording = survey(file)
    try:
        return recording.unreadable or sum(1 for _ in recording.messages((COMMAND, JOINTS)))
    except Unreadable as error:
        return error


def cut(content: bytes) -> Iterator[bytes]:
    for place in np.linspace(0, len(content) - 1, 60).astype(int).tolist():
        yield content[:place]


def changed(content: bytes) -> Iterator[bytes]:
    """Eight bytes become 0xff, or two become others, in many places."""
    rng = np.random.default_rng(0)
    for place in np.linspace(0, len(content) - 8, 100).astype(int).tolist():
        yield content[:place] + b"\xff" * 8 + content[place + 8 :]
        yield content[:place] + rng.bytes(2) + content[place + 2 :]


@pytest.mark.parametrize("storage", ["mcap", "db3"])
def test_what_is_cut_is_said_and_nothing_else_is_raised(storage: str, tmp_path: Path) -> None:
    sound = (write_bag(tmp_path / "bag", SENT, storage) / f"bag.{storage}").read_bytes()
    file = tmp_path / f"damaged.{storage}"
    assert read(file, sound) == len(SENT)
    for content in cut(sound):
        found = read(file, content)
        assert isinstance(found, Unreadable) and found.code == "LAKE-120" and file.name in found.detail
    some = [read(file, content) for content in changed(sound)]
    said = [found for found in some if isinstance(found, Unreadable)]
    assert len(said) > 20 and {found.code for found in said} == {"LAKE-120"}
