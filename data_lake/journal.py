"""What an unfinished ingest has on disk for good, noted as it goes: the same ingest, begun again, takes it up.

{data set}/unfinished/{base version}-{key}/000001.arrow, …: each adds entries, fragments, and rows that are in none yet.
On an object store, too, where what was sent is dearest.
"""

import hashlib
import json
import time
import uuid
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from lance.fragment import FragmentMetadata

from data_lake.files import LakePath, put_if_absent, read_bytes, remove
from data_lake.sources.files import ODD
from data_lake.statistics import Moments

FOLDER = "unfinished"
KEPT_S = 7 * 86400.0
"""How long what a killed ingest left is kept for its next attempt, while the data set stays as it was."""

NOTED = b"noted"


@dataclass(frozen=True, kw_only=True, slots=True)
class Durable:
    """What a writer has on disk for good and in no version. frames: fragments, and behind which absolute frame each
    group of them ends. videos: fragments; the first num_videos of places (camera, digest, chunk, file) are in them."""

    frames: list[tuple[int, list[FragmentMetadata]]] = field(default_factory=list)
    videos: list[FragmentMetadata] = field(default_factory=list)
    places: list[tuple[str, str, int, int]] = field(default_factory=list)
    num_videos: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """An episode that was appended. num_videos: how many its writer has taken by then. features, moments: of all
    episodes so far, as an ingest sums them up."""

    entry: Mapping[str, Any]
    frames: pa.Table
    num_videos: int
    features: Mapping[str, Any]
    moments: Mapping[str, Moments]


@dataclass(frozen=True, kw_only=True, slots=True)
class TakenUp:
    """pending: rows of the last entries, which are in no fragment."""

    entries: list[dict[str, Any]]
    features: dict[str, Any]
    moments: dict[str, Moments]
    pending: pa.Table
    durable: Durable


class Journal:
    """Of one ingest onto one version. key: what makes another attempt the same ingest."""

    def __init__(self, root: LakePath, base: int, key: str) -> None:
        self._root = root
        self._folder = root / FOLDER / f"{base:06d}-{hashlib.sha256(key.encode()).hexdigest()[:32]}"
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")
        self._puts: deque[Future[None]] = deque()
        self._waiting: deque[Step] = deque()
        self._number, self._last = 0, ""
        self._noted = (0, 0, 0)  # groups of frames, fragments of videos, videos
        self._mine = True

    def take_up(self) -> TakenUp | None:
        """What the attempt before noted. None when there is none, or somebody cleaned its files away."""
        tables = list(_segments(self._folder))
        said = [json.loads(table.schema.metadata[NOTED]) for table in tables]
        if not said:
            return None
        durable = _durable(said)
        if not all(path.exists() for path in files_of(self._root, durable)):
            _forget(self._folder)
            return None
        self._number, self._last = len(said), said[-1]["id"]
        self._noted = (len(durable.frames), len(durable.videos), durable.num_videos)
        rows = pa.concat_tables(table.replace_schema_metadata() for table in tables)
        frames_to = durable.frames[-1][0] if durable.frames else 0
        return TakenUp(
            entries=[entry for each in said for entry in each["entries"]],
            features=said[-1]["features"],
            moments={name: Moments.from_json(each) for name, each in said[-1]["moments"].items()},
            pending=rows.filter(pc.field("index") >= frames_to),
            durable=durable,
        )

    def add(self, step: Step, durable: Durable) -> None:
        """An episode more; what is `durable` meanwhile is noted, as far as whole episodes go."""
        self._waiting.append(step)
        if not self._mine or (len(durable.videos), len(durable.frames)) == (self._noted[1], self._noted[0]):
            return
        steps: list[Step] = []
        while self._waiting and self._waiting[0].num_videos <= durable.num_videos:
            steps.append(self._waiting.popleft())
        if steps:
            payload = self._segment(steps, durable)
            self._number += 1
            self._puts.append(self._pool.submit(self._put, self._number, payload))
        while self._puts and self._puts[0].done():
            self._puts.popleft().result()

    def _put(self, number: int, payload: bytes) -> None:
        """One after another, none behind one that failed. Another attempt may note, too: one of them is enough."""
        mine, self._mine = self._mine, False
        self._mine = mine and put_if_absent(self._folder / f"{number:06d}.arrow", payload)

    def _segment(self, steps: list[Step], durable: Durable) -> bytes:
        reach = steps[-1].entry["to_index"]
        groups, fragments, videos = self._noted
        frames = [group for group in durable.frames[groups:] if group[0] <= reach]
        self._noted = (groups + len(frames), len(durable.videos), durable.num_videos)
        frames_to = durable.frames[self._noted[0] - 1][0] if self._noted[0] else 0
        after, self._last = self._last, uuid.uuid4().hex
        said = {
            "id": self._last,
            "after": after,
            "entries": [step.entry for step in steps],
            "frames": [[end, [item.to_json() for item in group]] for end, group in frames],
            "videos": [item.to_json() for item in durable.videos[fragments:]],
            "places": durable.places[videos : durable.num_videos],
            "features": steps[-1].features,
            "moments": {name: moments.as_json() for name, moments in steps[-1].moments.items()},
        }
        rows = [step.frames for step in steps if step.entry["to_index"] > frames_to]
        table = pa.concat_tables(rows or [steps[-1].frames.slice(0, 0)])
        table = table.replace_schema_metadata({NOTED: json.dumps(said).encode()})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        return sink.getvalue().to_pybytes()

    def close(self) -> None:
        """Forget it: it is in a version now, or never will be."""
        self._pool.shutdown()
        for put in self._puts:
            put.result()
        _forget(self._folder)


def adoptable(root: LakePath, base: int) -> tuple[set[LakePath], set[LakePath]]:
    """Files that an unfinished ingest onto version `base` (0 before the first) may take up: its notes, and the data
    files that they name. After KEPT_S it is not waited for."""
    notes: set[LakePath] = set()
    named: set[LakePath] = set()
    for folder in (root / FOLDER).glob(f"{base:06d}-*"):
        paths = list(folder.glob("*.arrow"))
        if max((path.stat().st_mtime for path in paths), default=0.0) >= time.time() - KEPT_S:
            notes |= set(paths)
            for table in _segments(folder):
                said = json.loads(table.schema.metadata[NOTED])
                named |= set(files_of(root, _durable([said])))
    return notes, named


def _durable(said: list[dict[str, Any]]) -> Durable:
    places = [(key, digest, chunk, file) for each in said for key, digest, chunk, file in each["places"]]
    return Durable(
        frames=[(end, _fragments(group)) for each in said for end, group in each["frames"]],
        videos=[fragment for each in said for fragment in _fragments(each["videos"])],
        places=places,
        num_videos=len(places),
    )


def _fragments(said: list[dict[str, Any]]) -> list[FragmentMetadata]:
    return [FragmentMetadata.from_json(json.dumps(each)) for each in said]


def _segments(folder: LakePath) -> Iterator[pa.Table]:
    """Until the first that is not there, torn, or does not follow the one before it: of another attempt."""
    last = ""
    for number in range(1, len(list(folder.glob("*.arrow"))) + 1):
        try:
            table = pa.ipc.open_file(read_bytes(folder / f"{number:06d}.arrow")).read_all()
            said = json.loads(table.schema.metadata[NOTED])
            follows, last = said["after"] == last, said["id"]
        except (*ODD, OSError):
            return
        if not follows:
            return
        yield table


def _forget(folder: LakePath) -> None:
    """What another attempt removes meanwhile, or the disk keeps, gc finds."""
    with suppress(OSError):
        remove(folder)


def files_of(root: LakePath, durable: Durable) -> list[LakePath]:
    """The data files of its fragments."""
    groups = {"frames": [item for _, group in durable.frames for item in group], "videos": durable.videos}
    return [
        root / f"{name}.lance/data" / file.path
        for name, fragments in groups.items()
        for fragment in fragments
        for file in fragment.files
    ]
