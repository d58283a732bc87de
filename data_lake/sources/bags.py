"""Bags of ROS 2 as episodes: topics that `ingest.read` names, held at a rate, cut or marked where one pauses.

Nothing is interpolated: a row holds the newest value at or before its time, `read.max_age_s` old at most.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from data_lake.findings import Finding, finding
from data_lake.schema import fixed
from data_lake.sources.bag_choice import Chosen, choose
from data_lake.sources.bag_files import Recording, is_recording, recordings_in, survey
from data_lake.sources.bag_messages import Column, Types
from data_lake.sources.bag_streams import Stream, read_streams, shown, types_of
from data_lake.sources.episode import NOTHING, Episode, Feature, Part, Pictures, SourceCard
from data_lake.sources.files import Unreadable
from data_lake.sources.instructions import instruct_rows
from data_lake.sources.resample import NANOSECONDS, newest, row_times, runs, shared_span
from data_lake.specs import AS_THE_SOURCE_SAYS, ReadSpec

CAMERA = "observation.images."
MIN_ROWS = 2
MAX_ROWS = 10_000_000  # four days at 30 Hz: no recording, but a wrong stamp


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Aligned:
    """A recording at the rate of rows. times_T: in ns. index: by topic, the message that each row holds. age_ns: by
    stream, how old that is. is_old_T: rows that hold something older than allowed. silent_ns: how long before the last
    stream the first one ends, first_silent."""

    recording: Recording
    types: Types
    streams: Mapping[str, Stream]
    times_T: np.ndarray
    index: Mapping[str, np.ndarray]
    age_ns: Mapping[str, np.ndarray]
    is_old_T: np.ndarray
    max_age_ns: int
    first_silent: str
    silent_ns: int

    def column(self, column: Column, rows: slice) -> np.ndarray:
        """(T, D) float64."""
        return self.streams[column.topic].numbers[column.declared][self.index[column.topic][rows]]


class RosBags:
    """A bag, or a folder of bags: each is a recording, and gives an episode, or with `read.gaps` at `cut` several.

    Episodes are numbered through all recordings in natural order of their names; one that cannot be read takes one
    number. `extra` has the bag's name, the segment in it, the time of its first row and each topic's worst age.
    Rows begin where every topic has a value, the instruction too, and end where the first stream ends. An instruction
    holds until the next one. Pictures: as sensor_msgs has them, x to the right and y down, and red first.
    """

    TAKES: ClassVar[frozenset[str]] = frozenset(
        {"fps", "state", "action", "views", "instruction", "clock", "max_age_s", "gaps"}
    )

    def __init__(self, path: Path, read: ReadSpec = AS_THE_SOURCE_SAYS) -> None:
        self._read = read
        self._recordings = tuple(survey(place) for place in recordings_in(path))
        sound = [recording for recording in self._recordings if recording.unreadable is None]
        self._chosen = choose(path, sound, read) if sound else None
        chosen = self._chosen
        self._card = SourceCard(
            root=path,
            format="rosbag2",
            version=", ".join(sorted({file.suffix[1:] for each in self._recordings for file in each.files})),
            fps=math.nan if chosen is None else float(chosen.rate_hz),
            robot="",
            features={} if chosen is None else _features(chosen, read),
            cameras=tuple(CAMERA + view for view in read.views),
            num_episodes=len(self._recordings),
            instruction_source=read.instruction or "",
            by_format={"colour_order": "rgb", "image_orientation": "upright"},
            findings=(finding("LAKE-129", ", ".join(chosen.headless)),) if chosen and chosen.headless else (),
        )

    @property
    def card(self) -> SourceCard:
        """num_episodes: the recordings; how many episodes gaps make of them shows only when they are read."""
        return self._card

    @staticmethod
    def recognises(path: Path) -> bool:
        return is_recording(path) or bool(recordings_in(path))

    @property
    def parts(self) -> Sequence[Part]:
        return [Part(files=each.all_files, said=each.name, follows=True) for each in self._recordings]

    @property
    def shared(self) -> Mapping[str, str]:
        return {"chosen": repr(self._chosen)}

    def episodes(self, left_out: Mapping[int, int] = NOTHING) -> Iterator[Episode]:
        number = 0
        for place, recording in enumerate(self._recordings):
            if place in left_out:
                number += left_out[place]
                continue
            for episode in self._segments(recording, number):
                yield replace(episode, part=place, counted=True)
                number += 1

    def _segments(self, recording: Recording, first: int) -> Iterator[Episode]:
        """At least one episode."""
        file = self.card.relative(recording.files[0]) if recording.files else recording.name
        findings = [replace(item, episode=first) for item in recording.findings]
        try:
            if recording.unreadable is not None or self._chosen is None:
                raise recording.unreadable or Unreadable("LAKE-120")
            aligned = align(recording, self._chosen)
            segments, odd = self._cut(aligned, first, file)
            findings += odd
            if not segments:
                raise Unreadable("LAKE-020", f"fewer than {MIN_ROWS} rows without a gap")
        except Unreadable as error:
            findings.append(finding(error.code, error.detail, episode=first, file=file))
            extra = {"bag": recording.name}
            yield Episode(source_episode=first, rows=None, file=file, extra=extra, findings=tuple(findings))
            return
        for place, rows in enumerate(segments):
            episode = self._episode(aligned, self._chosen, rows, first + place)
            extra = {"bag": recording.name, "segment": place, **episode.extra}
            yield replace(episode, file=file, extra=extra, findings=(*findings, *episode.findings))
            findings = []

    def _cut(self, aligned: Aligned, number: int, file: str) -> tuple[list[slice], list[Finding]]:
        """The rows of each episode, and what is said of gaps: once a recording."""
        is_old_T, num_rows = aligned.is_old_T, len(aligned.times_T)
        is_marked = self._read.gaps == "mark"
        parts = [(0, num_rows)] if is_marked else runs(~is_old_T)
        segments = [slice(begin, end) for begin, end in parts if end - begin >= MIN_ROWS]
        findings: list[Finding] = []
        if is_old_T.any():
            worst, age_ns = max(((name, int(age_T.max())) for name, age_T in aligned.age_ns.items()), key=itemgetter(1))
            row, short = int(np.argmax(is_old_T)), len(parts) - len(segments)
            detail = f"{is_old_T.sum()} of {num_rows} rows, {worst} is up to {_seconds(age_ns)} s old"
            detail += f"; {short} parts of less than {MIN_ROWS} rows are left out" if short else ""
            code = "LAKE-125" if is_marked else "LAKE-124"
            findings.append(finding(code, detail, episode=number, row=row, file=file))
        if aligned.silent_ns > aligned.max_age_ns:
            detail = f"{aligned.first_silent} ends {_seconds(aligned.silent_ns)} s before the last topic does"
            findings.append(finding("LAKE-124", detail, episode=number, row=num_rows - 1, file=file))
        return segments, findings

    def _episode(self, aligned: Aligned, chosen: Chosen, rows: slice, number: int) -> Episode:
        count = rows.stop - rows.start
        table = {
            name: fixed(np.concatenate([aligned.column(column, rows) for column in columns], axis=1))
            for name, columns in (("observation.state", chosen.state), ("action", chosen.action))
        }
        table |= {"frame_index": np.arange(count), "episode_index": np.full(count, number)}
        if self._read.gaps == "mark":
            table["gap"] = pa.array(aligned.is_old_T[rows])
        said = [chosen.words] * count
        if chosen.instruction is not None and chosen.instruction in aligned.index:
            texts = aligned.streams[chosen.instruction].texts
            said = [texts[place] for place in aligned.index[chosen.instruction][rows]]
        told, instruction, odd = instruct_rows(pa.table(table), said, self._read.ignore_tasks, number)
        ages = {f"worst_age_s {topic}": _seconds(age_T[rows].max()) for topic, age_T in aligned.age_ns.items()}
        return Episode(
            source_episode=number,
            rows=told,
            instruction=instruction,
            views={CAMERA + view: _pictures(aligned, topic, rows) for view, topic in chosen.views.items()},
            length=count,
            extra={"start_ns": int(aligned.times_T[rows.start]), **ages},
            findings=tuple(odd),
        )


def align(recording: Recording, chosen: Chosen) -> Aligned:
    """Raises Unreadable for a recording that cannot be read, or in which the topics are not there at once."""
    types = types_of(recording, chosen)
    streams = read_streams(recording, chosen, types)
    said = {name: stream for name, stream in streams.items() if len(stream.stamps_N)}
    first_ns, last_ns = shared_span([said[name].stamps_N for name in chosen.streams])
    first_ns = max([first_ns, *(int(stream.stamps_N[0]) for stream in said.values())])
    if last_ns < first_ns:
        spans = [f"{name} from {stream.stamps_N[0]} to {stream.stamps_N[-1]} ns" for name, stream in said.items()]
        raise Unreadable("LAKE-122", f"its topics are not there at the same time: {', '.join(spans)}")
    if (last_ns - first_ns) * chosen.rate_hz > MAX_ROWS * NANOSECONDS:
        raise Unreadable("LAKE-123", f"from {first_ns} to {last_ns} ns there were more than {MAX_ROWS:,} rows")
    times_T = row_times(first_ns, last_ns, chosen.rate_hz)
    held = {name: newest(stream.stamps_N, times_T) for name, stream in said.items()}
    ages = {name: held[name][1] for name in chosen.streams}
    ends = {name: int(said[name].stamps_N[-1]) for name in chosen.streams}
    return Aligned(
        recording=recording,
        types=types,
        streams=said,
        times_T=times_T,
        index={name: index_T for name, (index_T, _) in held.items()},
        age_ns=ages,
        is_old_T=np.max(list(ages.values()), axis=0) > chosen.max_age_ns,
        max_age_ns=chosen.max_age_ns,
        first_silent=min(ends, key=lambda name: ends[name]),
        silent_ns=max(ends.values()) - last_ns,
    )


def _pictures(aligned: Aligned, topic: str, rows: slice) -> Pictures:
    recording, logs_N = aligned.recording, aligned.streams[topic].logs_N
    frames = partial(shown, recording, aligned.types, topic, logs_N, aligned.index[topic][rows])
    return Pictures(path=recording.files[0], frames=frames)


def _features(chosen: Chosen, read: ReadSpec) -> dict[str, Feature]:
    columns = {"observation.state": chosen.state, "action": chosen.action}
    names = {key: [name for column in each for name in column.names] for key, each in columns.items()}
    features = {key: Feature(dtype="float32", shape=(len(each),), names=each) for key, each in names.items() if each}
    return {**features, "gap": Feature(dtype="bool", shape=(1,))} if read.gaps == "mark" else features


def _seconds(age_ns: Any) -> float:
    return round(int(age_ns) / NANOSECONDS, 6)
