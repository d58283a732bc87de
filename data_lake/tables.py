"""A lake data set: three Lance tables (frames, videos, meta) that change together, or not at all.

A manifest, put if absent, pins one version of each; readers open tables only at a manifest's vector. A writer
commits the pinned fragments plus its own, so what an earlier crash or a rival left never enters a version.
"""

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import lance
import pyarrow as pa
from lance.fragment import FragmentMetadata, write_fragments

from data_lake.files import put_if_absent, sync
from data_lake.journal import Durable
from data_lake.schema import FILE_FORMAT, META, VIDEOS, meta_rows
from data_lake.shelf import Content, Shelves
from data_lake.video import VideoIndex
from errors import Transient, UserError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
TABLES = ("frames", "videos", "meta")
FRAGMENT_BYTES = 64 << 20  # what a writer holds in memory before it writes a fragment
FILES_PER_CHUNK = 1000
COMMIT_TRIES = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """One version of a data set. vector: the Lance version of each table. created: seconds since 1970."""

    version: int
    vector: dict[str, int]
    num_episodes: int
    num_frames: int
    num_videos: int
    created: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a video is among those of its camera, as LeRobot numbers files."""

    chunk_index: int
    file_index: int


def dataset_root(lake: Path, name: str) -> Path:
    """Where the data set `name` is. Raises UserError LAKE-034 for a name that could lead anywhere else."""
    if not NAME.fullmatch(name):
        raise UserError(
            "LAKE-034", f"not a name for a data set: {name!r}", next_step="use letters, digits, `.`, `-` and `_`"
        )
    return lake / "datasets" / name


def manifest_path(root: Path, version: int) -> Path:
    return root / "manifests" / f"{version:06d}.json"


def versions(root: Path) -> list[int]:
    """Every version of the data set, oldest first."""
    return sorted(int(path.stem) for path in (root / "manifests").glob("[0-9]*.json"))


def read_manifest(root: Path, version: int | None = None) -> Manifest | None:
    """That version's manifest, or the newest; None when there is none.

    Raises UserError LAKE-074 when it is no manifest.
    """
    if version is None:
        known = versions(root)
        if not known:
            return None
        version = known[-1]
    path = manifest_path(root, version)
    if not path.is_file():
        return None
    try:
        return Manifest(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise UserError("LAKE-074", "not a manifest", where=str(path), next_step=RESTORE) from error


NEEDED = {"videos": VIDEOS.names, "meta": META.names}
RESTORE = "restore the data set from a copy, or ingest its sources into a new one"


def open_table(root: Path, manifest: Manifest, name: str) -> lance.LanceDataset:
    """The table `name` as of `manifest`. Raises UserError LAKE-074 when that version is gone."""
    path = root / f"{name}.lance"
    where = f"{path} at version {manifest.vector[name]} (data set version {manifest.version})"
    try:
        table = lance.dataset(str(path), version=manifest.vector[name])
    except (ValueError, OSError) as error:
        raise UserError("LAKE-074", f"the table {name} cannot be opened", where=where, next_step=RESTORE) from error
    if absent := [column for column in NEEDED.get(name, ()) if column not in table.schema.names]:
        what = f"the table {name} is of another release: it has no column {absent[0]}"
        raise UserError("LAKE-074", what, where=where, next_step=RESTORE)
    return table


def read_meta(root: Path, manifest: Manifest) -> dict[str, bytes]:
    """The files of LeRobot's meta/ by their path below it."""
    table = open_table(root, manifest, "meta").to_table()
    return dict(zip(table["path"].to_pylist(), table["data"].to_pylist(), strict=True))


class Writer:
    """Appends to the newest version. `commit` gives None when another writer was first: begin again then."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.base = read_manifest(root)
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._frames: list[tuple[int, list[FragmentMetadata]]] = []  # and the absolute frame behind which they end
        self._put: list[tuple[str, str, int, int]] = []
        self._shelves = Shelves(root / "videos.lance", partial(_write, root / "videos.lance"))
        self._schema: pa.Schema | None = None
        self._places, self._numbers = self._known_videos()
        self.num_frames = self.base.num_frames if self.base else 0
        self.num_videos = self.base.num_videos if self.base else 0

    def _known_videos(self) -> tuple[dict[tuple[str, str], Place], dict[str, int]]:
        places: dict[tuple[str, str], Place] = {}
        numbers: dict[str, int] = {}
        if self.base is not None:
            columns = ["video_key", "blake3", "chunk_index", "file_index"]
            for row in open_table(self.root, self.base, "videos").to_table(columns=columns).to_pylist():
                place = Place(chunk_index=row["chunk_index"], file_index=row["file_index"])
                places[row["video_key"], row["blake3"]] = place
                number = place.chunk_index * FILES_PER_CHUNK + place.file_index + 1
                numbers[row["video_key"]] = max(number, numbers.get(row["video_key"], 0))
        return places, numbers

    def add_frames(self, frames: pa.Table) -> None:
        """Rows that follow all rows so far: row N of the table is absolute frame N."""
        self._schema = frames.schema if self._schema is None else self._schema
        self._pending.append(frames)
        self._pending_bytes += frames.nbytes
        self.num_frames += frames.num_rows
        if self._pending_bytes >= FRAGMENT_BYTES:
            self._flush_frames()

    def add_video(self, key: str, content: Content, index: VideoIndex) -> Place:
        """An mp4 as it is, once per camera and content."""
        known = self._places.get((key, index.digest))
        if known is not None:
            return known
        number = self._numbers.get(key, 0)
        place = Place(chunk_index=number // FILES_PER_CHUNK, file_index=number % FILES_PER_CHUNK)
        self._places[key, index.digest], self._numbers[key] = place, number + 1
        row = {
            "video_key": key,
            **asdict(place),
            "file_size": index.num_bytes,
            "moov_offset": index.moov[0],
            "moov_size": index.moov[1],
            "kf_indices": index.keyframes,
            "kf_positions": index.keyframe_bytes,
            "blake3": index.digest,
        }
        self._shelves.put(content, row)
        self._put.append((key, index.digest, place.chunk_index, place.file_index))
        self.num_videos += 1
        return place

    def adopt(self, done: Durable, pending: pa.Table) -> None:
        """Begin with what an earlier writer onto the same version had on disk, and rows that it had in memory."""
        self._frames, self._put = list(done.frames), list(done.places)
        self._shelves.begin_with(done.videos, done.num_videos)
        for key, digest, chunk_index, file_index in done.places:
            self._places[key, digest] = Place(chunk_index=chunk_index, file_index=file_index)
            self._numbers[key] = chunk_index * FILES_PER_CHUNK + file_index + 1
        self.num_videos += len(done.places)
        self.num_frames = done.frames[-1][0] if done.frames else self.num_frames
        self.add_frames(pending)

    def durable(self) -> Durable:
        """What is on disk for good by now, and in no version yet."""
        num_videos, videos = self._shelves.durable()
        return Durable(frames=self._frames, videos=videos, places=self._put, num_videos=num_videos)

    @property
    def num_put(self) -> int:
        """Videos that were added and not there before."""
        return len(self._put)

    def _flush_frames(self) -> None:
        if self._pending:
            fragments = _write(self.root / "frames.lance", pa.concat_tables(self._pending))
            for file in (file for fragment in fragments for file in fragment.files):
                sync(self.root / "frames.lance/data" / file.path)
            self._frames.append((self.num_frames, fragments))
            self._pending, self._pending_bytes = [], 0

    def commit(self, meta: Mapping[str, bytes], *, num_episodes: int) -> Manifest | None:
        """One commit per table, then the manifest. None: another writer put this version's manifest first."""
        self._flush_frames()
        fragments = {
            "frames": [fragment for _, group in self._frames for fragment in group],
            "videos": self._shelves.finish(),
        }
        schema = self._schema or (open_table(self.root, self.base, "frames").schema if self.base else pa.schema([]))
        vector = {
            "frames": self._commit_table("frames", schema, fragments["frames"]),
            "videos": self._commit_table("videos", VIDEOS, fragments["videos"]),
            "meta": _commit(self.root / "meta.lance", META, _write(self.root / "meta.lance", meta_rows(meta))),
        }
        manifest = Manifest(
            version=self.base.version + 1 if self.base else 1,
            vector=vector,
            num_episodes=num_episodes,
            num_frames=self.num_frames,
            num_videos=self.num_videos,
            created=time.time(),
        )
        self._still_there(fragments)
        payload = json.dumps(asdict(manifest), indent=1).encode()
        return manifest if put_if_absent(manifest_path(self.root, manifest.version), payload) else None

    def _still_there(self, fragments: Mapping[str, list[FragmentMetadata]]) -> None:
        """Raises Transient when somebody cleaned this writer's files away as left by a crash."""
        for name, written in fragments.items():
            for fragment in written:
                for file in fragment.files:
                    path = self.root / f"{name}.lance/data" / file.path
                    if not path.exists():
                        raise Transient(f"{path} was removed while this writer worked")

    def _commit_table(self, name: str, schema: pa.Schema, fragments: list[FragmentMetadata]) -> int:
        if self.base is None:
            return _commit(self.root / f"{name}.lance", schema, fragments)
        if not fragments:
            return self.base.vector[name]
        table = open_table(self.root, self.base, name)
        kept = [fragment.metadata for fragment in table.get_fragments()]
        return _commit(self.root / f"{name}.lance", table.schema, [*kept, *fragments])


def _write(path: Path, table: pa.Table) -> list[FragmentMetadata]:
    """New fragments on disk that no version of the table has yet."""
    _ensure(path, table.schema)
    return write_fragments(table, str(path), schema=table.schema, mode="append", data_storage_version=FILE_FORMAT)


def _exists(path: Path) -> bool:
    return any((path / "_versions").glob("*.manifest"))


def _ensure(path: Path, schema: pa.Schema) -> None:
    """Create the table empty; of several that try at once, one does."""
    if _exists(path):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        lance.write_dataset(schema.empty_table(), str(path), mode="create", data_storage_version=FILE_FORMAT)
    except OSError:  # the loser of the race may find one version there, or several
        if not _exists(path):
            raise


def _commit(path: Path, schema: pa.Schema, fragments: Iterable[FragmentMetadata]) -> int:
    """The version of the table that holds exactly `fragments`, in this order, whatever its latest version holds.

    An Overwrite loses to any commit since the version it read, so it is repeated on the latest.
    """
    _ensure(path, schema)
    operation = lance.LanceOperation.Overwrite(schema, list(fragments))
    for _ in range(COMMIT_TRIES):
        latest = lance.dataset(str(path)).version
        try:
            return lance.LanceDataset.commit(str(path), operation, read_version=latest, max_retries=0).version
        except OSError as error:
            if "commit conflict" not in str(error).lower():
                raise
    raise Transient(f"{path} changed {COMMIT_TRIES} times while this commit was tried")
