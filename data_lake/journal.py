"""What an unfinished ingest has on disk for good, noted as it goes: the same ingest, begun again, takes it up.

{data set}/unfinished/{base version}-{key}/000001.arrow, …: each adds entries, fragments, and rows that are in none yet,
and ends with its own BLAKE3. On an object store, too, where what was sent is dearest. A note that is not what was
written, or whose files are not, is dropped with all behind it.
"""

import hashlib
import json
import time
import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from blake3 import blake3
from lance.fragment import FragmentMetadata

from data_lake.files import LakePath, name_below, put_if_absent, read_bytes, remove
from data_lake.integrity import damage, digest_blocks
from data_lake.shelf import stored_files
from data_lake.sources.files import ODD
from data_lake.statistics import Moments
from data_lake.stored_videos import num_as_recorded

FOLDER = "unfinished"
KEPT_S = 7 * 86400.0
"""How long what a killed ingest left is kept for its next attempt, while the data set stays as it was."""

NOTED = b"noted"
DIGEST_BYTES = 32
FOLDERS = ("frames.lance", "videos.lance")


@dataclass(frozen=True, kw_only=True, slots=True)
class Durable:
    """What a writer has on disk for good and in no version. frames: fragments, and behind which absolute frame each
    group of them ends. videos: fragments; the first num_videos of places (camera, digest, chunk, file) are in them.
    files: what their data files hold, as `integrity.digests` says it, as far as a journal knows by now."""

    frames: list[tuple[int, list[FragmentMetadata]]] = field(default_factory=list)
    videos: list[FragmentMetadata] = field(default_factory=list)
    places: list[tuple[str, str, int, int]] = field(default_factory=list)
    num_videos: int = 0
    files: dict[str, Sequence[str]] = field(default_factory=dict)


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
        """What the attempt before noted, as far as it is what that one wrote. None when nothing is."""
        tables = list(_segments(self._folder))
        said = [json.loads(table.schema.metadata[NOTED]) for table in tables]
        said = said[: _num_kept(self._root, said)]
        for path in sorted(self._folder.glob("*.arrow"))[len(said) :]:
            _forget(path)
        if not said:
            return None
        tables, durable = tables[: len(said)], _durable(said)
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
            said, rows = self._segment(steps, durable)
            self._number += 1
            self._puts.append(self._pool.submit(self._put, self._number, said, rows, durable.files))
        while self._puts and self._puts[0].done():
            self._puts.popleft().result()

    def _put(self, number: int, said: dict[str, Any], rows: pa.Table, held: dict[str, Sequence[str]]) -> None:
        """One after another, none behind one that failed. Another attempt may note, too: one of them is enough."""
        mine, self._mine = self._mine, False
        if mine:
            with suppress(FileNotFoundError):  # somebody cleaned them away: committing says so
                paths = files_of(self._root, _durable([said]))
                files = {name_below(self._root, path): digest_blocks(path) for path in paths}
                held.update(files)
                noted = json.dumps({**said, "files": files}).encode()
                payload = _sealed(rows.replace_schema_metadata({NOTED: noted}))
                self._mine = put_if_absent(self._folder / f"{number:06d}.arrow", payload)

    def _segment(self, steps: list[Step], durable: Durable) -> tuple[dict[str, Any], pa.Table]:
        """What a note says, but for the contents of its files, and the rows that are in none."""
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
        return said, pa.concat_tables(rows or [steps[-1].frames.slice(0, 0)])

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
        files={name: blocks for each in said for name, blocks in each.get("files", {}).items()},
    )


def _fragments(said: list[dict[str, Any]]) -> list[FragmentMetadata]:
    return [FragmentMetadata.from_json(json.dumps(each)) for each in said]


def _num_kept(root: LakePath, said: list[dict[str, Any]]) -> int:
    """How many of these notes name files that hold what they held when they were noted, up to the first that does not.

    Videos beside a data file are read by the digests in their rows; an object store sees to its objects itself.
    """
    whole: list[FragmentMetadata] = []
    ends: list[int] = []
    for each in said:
        if next(damage(root, each["files"], *FOLDERS), None):
            break
        whole += _fragments(each["videos"])
        ends.append(len(whole))
    beside = (path for path in files_of(root, Durable(videos=whole)) if len(stored_files(path)) > 1)
    if isinstance(root, Path) and next(beside, None):
        kept = num_as_recorded(root / "videos.lance", whole)
        return sum(end <= kept for end in ends)
    return len(ends)


def _sealed(table: pa.Table) -> bytes:
    """An Arrow file, and the BLAKE3 of its bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    payload = sink.getvalue().to_pybytes()
    return payload + blake3(payload).digest()


def _segments(folder: LakePath) -> Iterator[pa.Table]:
    """Until the first that is not there, not what was written, or does not follow the one before it: of another
    attempt."""
    last = ""
    for number in range(1, len(list(folder.glob("*.arrow"))) + 1):
        try:
            content = read_bytes(folder / f"{number:06d}.arrow")
            payload, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
            if blake3(payload).digest() != digest:
                return
            table = pa.ipc.open_file(payload).read_all()
            said = json.loads(table.schema.metadata[NOTED])
            follows, last = said["after"] == last, said["id"]
        except (*ODD, OSError):
            return
        if not follows:
            return
        yield table


def _forget(path: LakePath) -> None:
    """What another attempt removes meanwhile, or the disk keeps, gc finds."""
    with suppress(OSError):
        remove(path)


def files_of(root: LakePath, durable: Durable) -> list[LakePath]:
    """The data files of its fragments."""
    groups = {"frames": [item for _, group in durable.frames for item in group], "videos": durable.videos}
    return [
        root / f"{name}.lance/data" / file.path
        for name, fragments in groups.items()
        for fragment in fragments
        for file in fragment.files
    ]
