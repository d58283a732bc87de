"""What one recording holds of the chosen topics: stamps, numbers and words in memory, pictures left in the file."""

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from data_lake.sources.bag_choice import Chosen
from data_lake.sources.bag_files import Message, Recording
from data_lake.sources.bag_images import rgb
from data_lake.sources.bag_messages import Column, Types, stamp_ns
from data_lake.sources.files import Unreadable


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Stream:
    """The N messages of one topic. stamps_N: by the chosen clock, never falling. logs_N: their times of reception.
    numbers: by declared column, (N, D). texts: of the instruction's topic."""

    stamps_N: np.ndarray
    logs_N: np.ndarray
    numbers: Mapping[str, np.ndarray]
    texts: tuple[str, ...]


class _Growing:
    """A Stream while its messages come in."""

    def __init__(self, columns: tuple[Column, ...], *, is_text: bool) -> None:
        self.columns, self.is_text = columns, is_text
        self.stamps, self.logs = array("q"), array("q")
        self.numbers = {column.declared: array("d") for column in columns}
        self.texts: list[str] = []

    def add(self, types: Types, message: Message, *, by_header: bool) -> None:
        """Raises Unreadable, naming the topic and the message's place in it."""
        value = types.decoded(message)
        stamp = stamp_ns(value.header) if by_header else message.log_ns
        if stamp <= 0:
            raise Unreadable("LAKE-123", "its header has no time")
        if self.stamps and stamp < self.stamps[-1]:
            raise Unreadable("LAKE-123", f"{(self.stamps[-1] - stamp) / 1e9:.6f} s before the message in front of it")
        for column in self.columns:
            numbers_D = column.arranged(*column.values(types, message.msgtype, value))
            self.numbers[column.declared].frombytes(numbers_D.tobytes())
        if self.is_text:
            self.texts.append(value.data)
        self.stamps.append(stamp)
        self.logs.append(message.log_ns)

    def done(self) -> Stream:
        count = len(self.stamps)
        return Stream(
            stamps_N=np.array(self.stamps, np.int64),
            logs_N=np.array(self.logs, np.int64),
            numbers={name: np.frombuffer(held).reshape(count, -1) for name, held in self.numbers.items()},
            texts=tuple(self.texts),
        )


def types_of(recording: Recording, chosen: Chosen) -> Types:
    """Raises Unreadable: LAKE-121, LAKE-122 for topics that the recording lacks."""
    if absent := [name for name in chosen.streams if name not in recording.topics]:
        raise _absent(recording, absent)
    there = [recording.topics[name] for name in chosen.topics if name in recording.topics]
    return Types(recording.definitions, {topic.msgtype for topic in there})


def _absent(recording: Recording, names: list[str]) -> Unreadable:
    there = ", ".join(map(str, recording.topics.values())) or "no topics"
    return Unreadable("LAKE-122", f"no message of {', '.join(names)}; it has {there}")


def read_streams(recording: Recording, chosen: Chosen, types: Types) -> dict[str, Stream]:
    """By topic; those of `chosen.streams` have messages. Raises Unreadable for what is wrong with any message."""
    growing = {
        name: _Growing(
            tuple(dict.fromkeys(column for column in chosen.columns if column.topic == name)),
            is_text=name == chosen.instruction,
        )
        for name in chosen.topics
    }
    stamped = {
        name
        for name in growing
        if chosen.clock == "header" and name in recording.topics and types.has_header(recording.topics[name].msgtype)
    }
    for message in recording.messages(growing.keys()):
        name, stream = message.topic, growing[message.topic]
        place = f"{name}, message {len(stream.stamps)}"
        if message.msgtype != recording.topics[name].msgtype:
            raise Unreadable("LAKE-121", f"{place} is {message.msgtype}, others {recording.topics[name].msgtype}")
        try:
            stream.add(types, message, by_header=name in stamped)
        except Unreadable as error:
            raise Unreadable(error.code, f"{place}: {error.detail}") from error
    for name, stream in growing.items():
        counted = recording.topics[name].count if name in recording.topics else 0
        if counted and counted != len(stream.stamps):  # a writer of MCAP may leave the counts out
            raise Unreadable("LAKE-120", f"{counted} messages of {name} are counted, {len(stream.stamps)} are there")
    if silent := [name for name in chosen.streams if not growing[name].stamps]:
        raise _absent(recording, silent)
    return {name: stream.done() for name, stream in growing.items()}


def shown(
    recording: Recording, types: Types, topic: str, logs_N: np.ndarray, index_T: np.ndarray
) -> Iterator[np.ndarray]:
    """Per row the picture of message index_T[row], (H, W, 3) uint8: one is decoded at a time, repeated while held.

    logs_N: times of reception of all N messages. Raises Unreadable.
    """
    places, repeats = np.unique(index_T, return_counts=True)
    wanted: dict[int, int] = dict(zip(places.tolist(), repeats.tolist(), strict=True))
    begin, end = int(logs_N[places].min()), int(logs_N[places].max())
    there = np.flatnonzero((logs_N >= begin) & (logs_N <= end)).tolist()
    for place, message in zip(there, recording.messages((topic,), begin, end + 1), strict=True):
        if place in wanted:
            picture = _picture(types, message, place)
            for _ in range(wanted[place]):
                yield picture


def _picture(types: Types, message: Message, place: int) -> Any:
    try:
        return rgb(message.msgtype, types.decoded(message))
    except Unreadable as error:
        raise Unreadable(error.code, f"{message.topic}, message {place}: {error.detail}") from error
