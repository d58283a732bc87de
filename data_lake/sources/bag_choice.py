"""Which topics of a source's bags become what, as `ingest.read` declares it; what it lacks is asked for by name.

Every question lists the topics there are: that is how a person learns what to declare.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Literal

from data_lake.sources.bag_files import Recording, Topic
from data_lake.sources.bag_images import COMPRESSED, RAW
from data_lake.sources.bag_messages import TEXT, Column, Types
from data_lake.sources.episode import RATE, TOLD, ask_together, asked, declared_rate
from data_lake.sources.files import Unreadable
from data_lake.sources.resample import NANOSECONDS
from data_lake.specs import ReadSpec

MAX_DENOMINATOR = 100_000  # as videos round their rates; 30000/1001 stays itself
PERIODS = 1.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """state, action: concatenated in this order. views: name to topic. instruction: its topic, else None and `words`
    are told to all. headless: streams without a header, where the others' is the clock."""

    state: tuple[Column, ...]
    action: tuple[Column, ...]
    views: Mapping[str, str]
    instruction: str | None
    words: str
    clock: Literal["header", "log"]
    headless: tuple[str, ...]
    rate_hz: Fraction
    max_age_ns: int

    @property
    def streams(self) -> tuple[str, ...]:
        """Topics that every row has a value of, each once."""
        return tuple(dict.fromkeys([*(column.topic for column in self.columns), *self.views.values()]))

    @property
    def topics(self) -> tuple[str, ...]:
        return (*self.streams, *((self.instruction,) if self.instruction else ()))

    @property
    def columns(self) -> tuple[Column, ...]:
        return (*self.state, *self.action)


def choose(root: Path, recordings: Sequence[Recording], read: ReadSpec) -> Chosen:
    """Of recordings that can be read. Raises UserError LAKE-035 for what is not declared, or is in no recording."""
    topics = _topics(recordings)
    ask_together(
        lambda: _columns(root, "state", read.state, topics),
        lambda: _columns(root, "action", read.action, topics),
        lambda: _views(root, read.views, topics),
        lambda: _instruction(root, read.instruction, topics),
    )
    state = _columns(root, "state", read.state, topics)
    action = _columns(root, "action", read.action, topics)
    views = _views(root, read.views, topics)
    instruction, words = _instruction(root, read.instruction, topics)
    streams = {column.topic for column in (*state, *action)} | set(views.values())
    with_header = _with_header(recordings, streams)
    ask_together(
        lambda: _clock(root, read.clock, with_header),
        lambda: _rate(root, read, topics, streams),
        lambda: _max_age(root, read.max_age_s, topics, streams),
    )
    clock = read.clock or "log"
    named = _named(root, recordings, {"state": state, "action": action})
    return Chosen(
        state=named["state"],
        action=named["action"],
        views=views,
        instruction=instruction,
        words=words,
        clock=clock,
        headless=tuple(sorted(streams - with_header)) if clock == "header" else (),
        rate_hz=_rate(root, read, topics, streams),
        max_age_ns=_max_age(root, read.max_age_s, topics, streams),
    )


def _clock(root: Path, declared: str | None, with_header: set[str]) -> None:
    if declared is None and with_header:
        why = "by which clock its messages are aligned"
        choices = '"header" (stamped where they were measured) or "log" (when the recorder received them)'
        raise asked(root, "clock", why, choices, "header")


def _topics(recordings: Sequence[Recording]) -> dict[str, Topic]:
    """Of all recordings: counts summed up, the slowest of the mean rates."""
    found: dict[str, Topic] = {}
    for recording in recordings:
        for name, topic in recording.topics.items():
            known = found.get(name, replace(topic, count=0, rate_hz=0.0))
            rates = [rate for rate in (known.rate_hz, topic.rate_hz) if rate]
            found[name] = replace(known, count=known.count + topic.count, rate_hz=min(rates, default=0.0))
    return dict(sorted(found.items()))


def _listed(topics: Mapping[str, Topic], types: Collection[str] = ()) -> str:
    fit = [str(topic) for topic in topics.values() if not types or topic.msgtype in types]
    return ", ".join(fit) or f"nothing that is fit; there are {', '.join(map(str, topics.values())) or 'no topics'}"


def _columns(root: Path, field: str, declared: Sequence[str], topics: Mapping[str, Topic]) -> tuple[Column, ...]:
    choices = f'a list of "topic.field", such as "/joint_states.position", out of {_listed(topics)}'
    example = ["/joint_states.position"]
    if not declared:
        raise asked(root, field, f"which of its topics are the {field}", choices, example)
    columns = tuple(Column(declared=each) for each in declared)
    for column in columns:
        if column.topic not in topics or not column.path:
            raise asked(root, field, f"anything of {column.declared!r}", choices, example)
    return columns


def _views(root: Path, declared: Mapping[str, str], topics: Mapping[str, Topic]) -> dict[str, str]:
    """Bags without pictures have no views to ask for."""
    cameras = [name for name, topic in topics.items() if topic.msgtype in (RAW, COMPRESSED)]
    odd = next((topic for topic in declared.values() if topic not in cameras), None)
    if odd is None and (declared or not cameras):
        return dict(declared)
    why = "which of its topics are views" if odd is None else f"any pictures under {odd!r}"
    choices = f"view names, each with one of the topics {_listed(topics, (RAW, COMPRESSED))}"
    raise asked(root, "views", why, choices, {"front": next(iter(cameras), "/camera")})


def _instruction(root: Path, declared: str | None, topics: Mapping[str, Topic]) -> tuple[str | None, str]:
    """The topic and "", or None and the words themselves."""
    if declared is not None and declared.startswith("="):
        return None, declared.removeprefix("=")
    if declared is not None and declared in topics and topics[declared].msgtype == TEXT:
        return declared, ""
    why = "what the robot was told" if declared is None else f"any {TEXT} under {declared!r}"
    choices = f'"=the words themselves", or a topic: {_listed(topics, (TEXT,))}'
    raise asked(root, "instruction", why, choices, TOLD)


def _with_header(recordings: Sequence[Recording], names: Collection[str]) -> set[str]:
    """Which of these topics have messages with a header, in any recording."""
    used = {
        (name, recording.topics[name].msgtype, recording.definitions.get(recording.topics[name].msgtype))
        for recording in recordings
        for name in names
        if name in recording.topics
    }
    found: set[str] = set()
    for name, msgtype, definition in used:
        try:
            has_header = Types({msgtype: definition} if definition else {}, (msgtype,)).has_header(msgtype)
        except Unreadable:
            continue  # said of the recording, once it is read
        found |= {name} if has_header else set()
    return found


def _named(
    root: Path, recordings: Sequence[Recording], columns: Mapping[str, tuple[Column, ...]]
) -> dict[str, tuple[Column, ...]]:
    """The columns with their dimensions as the source's first message of each topic names them."""
    named: dict[str, tuple[Column, ...]] = {}
    for field, declared in columns.items():
        named[field] = tuple(_first(root, field, recordings, column) for column in declared)
    return named


def _first(root: Path, field: str, recordings: Sequence[Recording], column: Column) -> Column:
    """Raises UserError LAKE-035 where the topic's messages have no numbers in the field."""
    wrong = None
    for recording in recordings:
        if column.topic not in recording.topics:
            continue
        try:
            types = Types(recording.definitions, (recording.topics[column.topic].msgtype,))
            with closing(recording.messages((column.topic,))) as messages:
                for message in messages:
                    _, names = column.values(types, message.msgtype, types.decoded(message))
                    return replace(column, names=names)
        except Unreadable as error:
            wrong = error if error.code == "LAKE-122" else wrong  # others are said of the recording, once it is read
    if wrong is not None:
        choices = f'"topic.field" with a field of it ({wrong.detail})'
        raise asked(root, field, f"what {column.declared!r} is", choices, ["/joint_states.position"])
    return column


def _rate(root: Path, read: ReadSpec, topics: Mapping[str, Topic], streams: Collection[str]) -> Fraction:
    rate_hz = declared_rate(root, read)
    if rate_hz is not None:
        return rate_hz.limit_denominator(MAX_DENOMINATOR)
    used = _listed({name: topics[name] for name in sorted(streams)})
    raise asked(root, "fps", "how many rows a second are wanted", f"{RATE}; its topics are {used}", 20)


def _max_age(root: Path, declared: float | None, topics: Mapping[str, Topic], streams: Collection[str]) -> int:
    """Nanoseconds."""
    if declared is not None and 0 < declared < 2**33:
        return round(declared * NANOSECONDS)
    rated = sorted((topics[name] for name in streams if topics[name].rate_hz), key=lambda topic: topic.rate_hz)
    why = "how old a value may be that a row holds"
    slowest = next(iter(rated), None)
    proposed = float(f"{PERIODS / slowest.rate_hz:.3g}") if slowest else 0.15
    whence = f" ({PERIODS:g} periods of its slowest topic, {slowest})" if slowest else ""
    raise asked(root, "max_age_s", why, f"seconds, for example {proposed:g}{whence}", proposed)
