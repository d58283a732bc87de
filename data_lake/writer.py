"""Writing a version of a data set: rows and videos into new fragments, one commit per table, then the manifest.

A writer commits the pinned fragments plus its own, so what an earlier crash or a rival left never enters a version.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from lance.fragment import FragmentMetadata, write_fragments

from data_lake.cluster import Cluster
from data_lake.files import LakePath, make_folder, put_if_absent, sync
from data_lake.integrity import digests
from data_lake.journal import Durable
from data_lake.references import References, referenced
from data_lake.schema import FILE_FORMAT, META, VIDEOS, meta_rows
from data_lake.shelf import Content, Shelves, Write
from data_lake.shelf_afar import ShelvesAfar
from data_lake.tables import Manifest, manifest_path, open_table, read_manifest
from data_lake.video import VideoIndex
from errors import Transient

FRAGMENT_BYTES = 64 << 20  # what a writer holds in memory before it writes a fragment
FILES_PER_CHUNK = 1000
COMMIT_TRIES = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a video is among those of its camera, as LeRobot numbers files."""

    chunk_index: int
    file_index: int


class Writer:
    """Makes the version after the newest. `commit` gives None when another writer was first: begin again then.

    leave: video files stay where they are and are referred to; what is no file of its own is stored all the same.
    cluster: where new videos are read and written, None for here.
    """

    def __init__(self, root: LakePath, *, leave: bool = False, cluster: Cluster | None = None) -> None:
        self.root = root
        self.base = read_manifest(root)
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._frames: list[tuple[int, list[FragmentMetadata]]] = []  # and the absolute frame behind which they end
        self._put: list[tuple[str, str, int, int]] = []
        self._shelves = self.new_shelves() if cluster is None else ShelvesAfar(*self._videos, cluster)
        self._schema: pa.Schema | None = None
        self._leave = leave
        self._left = References(open_table(root, self.base, "videos") if self.base else None)
        self._instead: dict[str, list[FragmentMetadata]] = {}
        self._files: dict[str, Sequence[str]] = {}  # what is known of the contents of those that this writer wrote
        self._places, self._numbers = self._known_videos()
        self.num_held = self.base.num_episodes if self.base else 0
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

    @property
    def is_changed(self) -> bool:
        """Whether files that stay where they are went elsewhere, or into the lake: a version of its own."""
        return self._left.changed

    @property
    def has_left(self) -> bool:
        """Whether some file stays where it is."""
        return self._left.are_any

    def is_where(self, view: Mapping[str, Any], digests: Mapping[Path, str]) -> bool:
        """Whether the video of an entry's view is as this writer would put it: stored, or left in one of the source's
        files, whose contents `digests` tells by their resolved paths."""
        left = self._left.of(view["video_key"], view["chunk_index"], view["file_index"])
        return left is None or (self._leave and digests.get(left["path"]) == left["blake3"])

    def place_of(self, key: str, digest: str) -> Place | None:
        """Where the video of that camera and content is already."""
        return self._places.get((key, digest))

    def add_video(self, key: str, content: Content, index: VideoIndex) -> Place:
        """An mp4 as it is, once per camera and content. One that was left where it was is looked for where it is now,
        or stored."""
        known = self.place_of(key, index.digest)
        number = self._numbers.get(key, 0)
        place = known or Place(chunk_index=number // FILES_PER_CHUNK, file_index=number % FILES_PER_CHUNK)
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
        if self._leave and isinstance(content, Path):
            if known is None or self._left.has(row):
                self._left.put(row, content)
        elif self._left.take_in(row) or known is None:
            self._shelves.put(content, row)
            self._put.append((key, index.digest, place.chunk_index, place.file_index))
        if known is None:
            self._places[key, index.digest], self._numbers[key] = place, number + 1
            self.num_videos += 1
        return place

    def adopt(self, done: Durable, pending: pa.Table) -> None:
        """Begin with what an earlier writer onto the same version had on disk, and rows that it had in memory."""
        self._frames, self._put = list(done.frames), list(done.places)
        self._shelves.begin_with(done.videos, done.num_videos)
        for key, digest, chunk_index, file_index in done.places:
            self._places[key, digest] = Place(chunk_index=chunk_index, file_index=file_index)
            self._numbers[key] = chunk_index * FILES_PER_CHUNK + file_index + 1
        self._files |= done.files
        self.num_videos += len(done.places)
        self.num_frames = done.frames[-1][0] if done.frames else self.num_frames
        self.add_frames(pending)

    def durable(self) -> Durable:
        """What is on disk for good by now, and in no version yet."""
        num_videos, videos = self._shelves.durable()
        return Durable(frames=self._frames, videos=videos, places=self._put, num_videos=num_videos, files=self._files)

    @property
    def num_put(self) -> int:
        """Videos that were stored and not there before."""
        return len(self._put)

    def write_frames(self, frames: pa.Table) -> list[FragmentMetadata]:
        """Fragments on disk that are in no version yet: `put_instead` takes them."""
        fragments = _write(self.root / "frames.lance", frames)
        for file in (file for fragment in fragments for file in fragment.files):
            sync(self.root / "frames.lance/data" / file.path)
        return fragments

    def new_shelves(self) -> Shelves:
        """To write videos that the data set has already in fragments for `put_instead`."""
        return Shelves(*self._videos)

    @property
    def _videos(self) -> tuple[LakePath, Write]:
        folder = self.root / "videos.lance"
        return folder, partial(_write, folder)

    def put_instead(self, name: str, fragments: list[FragmentMetadata]) -> None:
        """`fragments` instead of all that the version before has of the table `name`: the same rows in the same order,
        rewritten where they changed or lie better."""
        self._instead[name] = fragments

    def _flush_frames(self) -> None:
        if self._pending:
            self._frames.append((self.num_frames, self.write_frames(pa.concat_tables(self._pending))))
            self._pending, self._pending_bytes = [], 0

    def commit(
        self,
        meta: Mapping[str, bytes],
        *,
        num_episodes: int,
        edit: Mapping[str, Any] | None = None,
        check: Callable[[Manifest], None] | None = None,
    ) -> Manifest | None:
        """One commit per table, then the manifest. None: another writer put this version's manifest first.

        check: reads what is about to become a version, and raises where it must not.
        """
        self._flush_frames()
        fragments = {
            "frames": [fragment for _, group in self._frames for fragment in group],
            "videos": [*self._shelves.finish(), *self._write_left()],
        }
        schema = self._schema or (open_table(self.root, self.base, "frames").schema if self.base else pa.schema([]))
        vector = {
            "frames": self._commit_table("frames", schema, fragments["frames"]),
            "videos": self._commit_table("videos", VIDEOS, fragments["videos"]),
            "meta": _commit(self.root / "meta.lance", META, _write(self.root / "meta.lance", meta_rows(meta))),
        }
        new = {name: [*written, *self._instead.get(name, ())] for name, written in fragments.items()}
        self._still_there(new)  # before they are read, and once more at the last moment
        manifest = Manifest(
            version=self.base.version + 1 if self.base else 1,
            vector=vector,
            num_episodes=num_episodes,
            num_frames=self.num_frames,
            num_videos=self.num_videos,
            created=time.time(),
            files=digests(self.root, vector, {**(self.base.files if self.base else {}), **self._files}),
            edit=edit,
        )
        if check is not None:
            check(manifest)
        self._still_there(new)
        path = manifest_path(self.root, manifest.version)
        return manifest if put_if_absent(path, manifest.as_bytes()) else None

    def _write_left(self) -> list[FragmentMetadata]:
        folder = self.root / "videos.lance"
        _ensure(folder, VIDEOS)
        fragments = self._left.write(folder)
        for file in (file for fragment in fragments for file in fragment.files):
            sync(folder / "data" / file.path)
        return fragments

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
        if not fragments and name not in self._instead:  # nor can a reference have gone: it is written anew, or stored
            return self.base.vector[name]
        table = open_table(self.root, self.base, name)
        kept = self._instead.get(name)
        if kept is None:
            parts = table.get_fragments()
            if name == "videos" and self._left.changed:
                parts = [part for part in parts if not referenced(part)]
            kept = [fragment.metadata for fragment in parts]
        return _commit(self.root / f"{name}.lance", table.schema, [*kept, *fragments])


def _write(path: LakePath, table: pa.Table) -> list[FragmentMetadata]:
    """New fragments on disk that no version of the table has yet."""
    _ensure(path, table.schema)
    return write_fragments(table, str(path), schema=table.schema, mode="append", data_storage_version=FILE_FORMAT)


def _exists(path: LakePath) -> bool:
    return any((path / "_versions").glob("*.manifest"))


def _ensure(path: LakePath, schema: pa.Schema) -> None:
    """Create the table empty; of several that try at once, one does."""
    if _exists(path):
        return
    make_folder(path.parent)
    try:
        lance.write_dataset(schema.empty_table(), str(path), mode="create", data_storage_version=FILE_FORMAT)
    except OSError:  # the loser of the race may find one version there, or several
        if not _exists(path):
            raise


def _commit(path: LakePath, schema: pa.Schema, fragments: Iterable[FragmentMetadata]) -> int:
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
