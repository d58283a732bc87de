"""What is read of one bag: stamps by either clock, pictures one at a time."""

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from data_lake.sources.bag_choice import choose
from data_lake.sources.bag_files import survey
from data_lake.sources.bag_streams import read_streams, types_of
from data_lake.sources.bags import RosBags
from data_lake.sources.episode import Pictures
from data_lake.sources.files import Unreadable
from tests.data_lake.bag_recordings import (
    COMMAND,
    FRONT,
    JOINTS,
    READ,
    START_NS,
    Sent,
    coloured,
    command,
    compressed,
    demonstration,
    joints,
    raw_image,
    write_bag,
)
from tests.data_lake.bags_seen import CAMERA, SIMPLE, codes, columns, examined, frames, read


def test_a_stamp_that_leaps(tmp_path: Path) -> None:
    """No table of fifty thousand million rows is made for it."""
    sent = [command(number, (number,)) for number in (0, 0.1, 1_000_000_000)]
    (episode,) = read(write_bag(tmp_path / "bag", sent), SIMPLE)
    assert codes(episode) == ["LAKE-123"]


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


def test_messages_that_are_counted_but_not_there(tmp_path: Path) -> None:
    """As where an index of SQLite is damaged; a writer that counts nothing is believed."""
    recording = survey(write_bag(tmp_path / "bag", [command(number / 10, (number,)) for number in range(5)]))
    chosen = choose(tmp_path, [recording], SIMPLE)
    types = types_of(recording, chosen)
    for count in (0, 5):
        told = replace(recording, topics={COMMAND: replace(recording.topics[COMMAND], count=count)})
        assert len(read_streams(told, chosen, types)[COMMAND].stamps_N) == 5
    told = replace(recording, topics={COMMAND: replace(recording.topics[COMMAND], count=6)})
    with pytest.raises(Unreadable, match="6 messages of /command are counted, 5 are there") as refused:
        read_streams(told, chosen, types)
    assert refused.value.code == "LAKE-120"
