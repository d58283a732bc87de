"""Frames of a data set's version at any index, batch by batch: the same items as LeRobot's own reader gives.

Rows come by one batched take, or from memory where the table is small; pictures by one decoding of each span.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from data_lake.pixels import fresh_pixels
from data_lake.schema import is_number, lake_name, vectors
from data_lake.version import DatasetVersion
from data_lake.video_reader import VideoReader
from errors import UserError

CACHED_ROW_BYTES = 256 * 2**20  # columns up to this size in all are kept in memory


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Frames:
    """N frames in the order asked for. columns: by dotted name, (N,) or (N, D), as they are in the lake; a chunked
    one (N, H, D): past the end of its episode the last row again, and False in mask_NH. images: by camera, (N, Y, X, 3)
    uint8 RGB as the video holds them. tasks: the words of each."""

    index_N: np.ndarray
    columns: dict[str, np.ndarray]
    mask_NH: np.ndarray
    images: dict[str, np.ndarray]
    tasks: tuple[str, ...]


class FrameReader:
    """Random access to `version`. horizon: rows of an action chunk; 0: the action of the frame alone, (N, A).

    cameras: those to decode, all if None. Picklable: handles begin anew where it is unpickled.
    """

    def __init__(
        self, version: DatasetVersion, *, horizon: int = 0, cameras: Sequence[str] | None = None, threads: int = 0
    ) -> None:
        self.version = version
        self.horizon = horizon
        self.cameras = tuple(version.cameras if cameras is None else cameras)
        self.videos = VideoReader(str(version.root / "videos.lance"), version.manifest.vector["videos"], threads)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_places", "_words", "_rows")}

    def __len__(self) -> int:
        return self.version.manifest.num_frames

    @cached_property
    def _words(self) -> dict[int, str]:
        return {number: text for text, number in self.version.tasks.items()}

    @cached_property
    def _rows(self) -> tuple[lance.LanceDataset, dict[str, np.ndarray]]:
        """The table, and its columns where they are small enough to be kept."""
        table = self.version.table("frames")
        names = self._names(table.schema)
        width = sum(_width(table.schema.field(name)) for name in names)
        small = width * len(self) <= CACHED_ROW_BYTES
        return table, self._read(table.to_table(columns=names)) if small else {}

    def _names(self, schema: pa.Schema) -> list[str]:
        """Columns of numbers; words and lists of any length are no part of a batch."""
        named = [schema.field(lake_name(name)) for name in self.version.columns]
        return [column.name for column in named if is_number(column.type) or _is_fixed(column)]

    @cached_property
    def _places(self) -> "_Places":
        rows = self.videos.videos.row_of if self.cameras else {}
        return _Places.of(self.version, self.cameras, rows)

    def batch(self, indices: Sequence[int] | np.ndarray) -> Frames:
        """The frames at these absolute indices. Raises UserError LOAD-010 for an index outside, LOAD-014 for what is no
        whole number, LOAD-011 for a camera that an episode lacks, LOAD-012 for pictures of another size than declared,
        LOAD-015 in a forked process, DECODE-… for broken videos."""
        self.videos.ensure_not_forked()
        given_N = np.asarray(indices)
        if given_N.size and given_N.dtype.kind not in "iu":
            raise UserError(
                "LOAD-014",
                f"indices of frames are whole numbers, these are {given_N.dtype.name}",
                where=self.version.name,
                next_step="a time t in seconds of an episode is its first index + round(t * fps); for a mask take "
                "np.flatnonzero(mask)",
            )
        index_N = given_N.astype(np.int64)
        if index_N.size and (index_N.min() < 0 or index_N.max() >= len(self)):
            outside = index_N[(index_N < 0) | (index_N >= len(self))][0]
            raise UserError(
                "LOAD-010",
                f"no frame {outside}: there are {len(self)}",
                where=self.version.name,
                next_step=f"ask for frames 0 to {len(self) - 1}",
            )
        episode_N = self._places.episodes(index_N)
        rows_NH = index_N[:, None] + np.arange(max(self.horizon, 1))
        ends_N = self._places.first_E[episode_N] + self._places.length_E[episode_N]
        columns = self._columns(index_N, np.minimum(rows_NH, ends_N[:, None] - 1))
        tasks = tuple(self._words[number] for number in columns["task_index"].tolist())
        return Frames(
            index_N=index_N,
            columns=columns,
            mask_NH=rows_NH < ends_N[:, None],
            images=self._images(index_N, episode_N),
            tasks=tasks,
        )

    def _columns(self, index_N: np.ndarray, rows_NH: np.ndarray) -> dict[str, np.ndarray]:
        """Every column at the frames, the action at its chunk."""
        table, kept = self._rows
        if kept:
            found, place_N, place_NH = kept, index_N, rows_NH
        else:
            chunk = rows_NH if self.horizon else index_N[:, None]
            unique, back = np.unique(np.concatenate([index_N, chunk.reshape(-1)]), return_inverse=True)
            found = self._read(table.take(unique.tolist(), columns=self._names(table.schema)))
            place_N, place_NH = back[: len(index_N)], back[len(index_N) :].reshape(chunk.shape)
        columns = {name: rows[place_N] for name, rows in found.items() if name != "action" or not self.horizon}
        return columns | ({"action": found["action"][place_NH]} if self.horizon else {})

    def _read(self, table: pa.Table) -> dict[str, np.ndarray]:
        found = {}
        for name, feature in self.version.columns.items():
            values = vectors(table[lake_name(name)]) if lake_name(name) in table.column_names else None
            if values is not None:
                is_scalar = not _is_fixed(table.schema.field(lake_name(name)))
                found[name] = values[:, 0] if is_scalar and feature["shape"] == [1] else values
        return found

    def _images(self, index_N: np.ndarray, episode_N: np.ndarray) -> dict[str, np.ndarray]:
        """By camera (N, Y, X, 3); all cameras in one read."""
        places = [self._places.of_camera(camera, index_N, episode_N, self.version) for camera in self.cameras]
        shapes = [self.version.info["features"][camera]["shape"] for camera in self.cameras]
        images = [fresh_pixels(len(index_N), *shape) for shape in shapes]

        def put(member: int, image: np.ndarray) -> None:
            camera, place = divmod(member, len(index_N))
            if image.shape != images[camera].shape[1:]:
                raise UserError(
                    "LOAD-012",
                    f"a picture of {image.shape[1]} x {image.shape[0]} where info.json says {shapes[camera]}",
                    where=f"{self.version.name} · frame {index_N[place]} · {self.cameras[camera]}",
                    next_step="check the data set with `./vlaloop doctor`",
                )
            images[camera][place] = image

        if places:
            rows, seconds = (np.concatenate(parts) for parts in zip(*places, strict=True))
            self.videos.read(rows, seconds, self._places.fps, put)
        return dict(zip(self.cameras, images, strict=True))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Places:
    """Where the episodes (E,) are: first_E and length_E frames; by camera, row_E of its mp4 (-1: absent) and from_E
    seconds in it."""

    fps: float
    first_E: np.ndarray
    length_E: np.ndarray
    row_E: dict[str, np.ndarray]
    from_E: dict[str, np.ndarray]

    @classmethod
    def of(cls, version: DatasetVersion, cameras: Sequence[str], rows: Mapping[tuple[str, int, int], int]) -> "_Places":
        row_E, from_E = {}, {}
        for camera in cameras:
            place = f"videos/{camera}"
            keys: list[Any] = [
                (camera, e.get(f"{place}/chunk_index"), e.get(f"{place}/file_index")) for e in version.episodes
            ]
            row_E[camera] = np.array([rows.get(key, -1) for key in keys])
            starts = [e.get(f"{place}/from_timestamp") for e in version.episodes]
            from_E[camera] = np.array([np.nan if start is None else start for start in starts])
        return cls(
            fps=float(version.info["fps"]),
            first_E=np.array([e["dataset_from_index"] for e in version.episodes], np.int64),
            length_E=np.array([e["length"] for e in version.episodes], np.int64),
            row_E=row_E,
            from_E=from_E,
        )

    def episodes(self, index_N: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.first_E, index_N, side="right") - 1

    def of_camera(
        self, camera: str, index_N: np.ndarray, episode_N: np.ndarray, version: DatasetVersion
    ) -> tuple[np.ndarray, np.ndarray]:
        """The row of the mp4 and the time in it (N,) of each frame."""
        rows_N = self.row_E[camera][episode_N]
        if (rows_N < 0).any():
            lacking = version.episodes[int(episode_N[rows_N < 0][0])]["episode_index"]
            raise UserError(
                "LOAD-011",
                f"episode {lacking} has no camera {camera!r}",
                where=version.name,
                next_step="name the cameras that all of these episodes have",
            )
        return rows_N, self.from_E[camera][episode_N] + (index_N - self.first_E[episode_N]) / self.fps


def _is_fixed(column: pa.Field) -> bool:
    return pa.types.is_fixed_size_list(column.type)


def _width(column: pa.Field) -> int:
    """Bytes of one row."""
    if _is_fixed(column):
        return column.type.list_size * column.type.value_type.bit_width // 8
    return column.type.bit_width // 8
