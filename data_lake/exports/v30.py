"""A version as a LeRobot v3.0 folder: rows in parquet, a row group per episode; every mp4 byte for byte."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq

from data_lake import lake_meta
from data_lake.exports.meta import v3_files
from data_lake.exports.stats import VersionStats
from data_lake.exports.videos import stored_videos
from data_lake.findings import Finding
from data_lake.schema import lake_name
from data_lake.version import DatasetVersion
from data_lake.writer import FILES_PER_CHUNK

DATA_BYTES = 100 << 20  # of one data file before compression, as info.json says


def write_v30(version: DatasetVersion, stats: VersionStats, folder: Path) -> list[Finding]:
    """Into the empty `folder`. Videos keep their numbers, so that the spans of the episodes hold as they are; one that
    several episodes show in full is there once for each, behind the others: in this layout frames have one owner."""
    places, copies = _write_rows(version, folder), _Copies(version)
    places = [place | copies.columns(episode) for place, episode in zip(places, version.episodes, strict=True)]
    for name, content in v3_files(version, stats, places).items():
        path = folder / "meta" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for video in stored_videos(version):
        for place in copies.places[video.key, video.chunk_index, video.file_index]:
            video.copy(folder / lake_meta.VIDEO_PATH.format(video_key=video.key, **place))
    return []


class _Copies:
    """Where the mp4s of a version go. places: of each by camera, chunk and file in the lake, as it is and then for
    further episodes with the same span."""

    def __init__(self, version: DatasetVersion) -> None:
        self._cameras = version.cameras
        self._claims: Counter[tuple[Any, ...]] = Counter()
        self.places: dict[tuple[str, int, int], list[dict[str, int]]] = {}
        self._last = dict.fromkeys(version.cameras, -1)
        for episode in version.episodes:
            for key in version.cameras:
                chunk, file = self._stored(episode, key)
                self.places[key, chunk, file] = [{"chunk_index": chunk, "file_index": file}]
                self._last[key] = max(self._last[key], chunk * FILES_PER_CHUNK + file)

    def columns(self, episode: Mapping[str, Any]) -> dict[str, int]:
        """Of the episodes table, for the next episode: in which copy its frames are."""
        found = {}
        for key in self._cameras:
            stored = (key, *self._stored(episode, key))
            span = (*stored, episode[f"videos/{key}/from_timestamp"])
            places = self.places[stored]
            if self._claims[span] == len(places):
                self._last[key] += 1
                chunk, file = divmod(self._last[key], FILES_PER_CHUNK)
                places.append({"chunk_index": chunk, "file_index": file})
            found |= {f"videos/{key}/{name}": value for name, value in places[self._claims[span]].items()}
            self._claims[span] += 1
        return found

    @staticmethod
    def _stored(episode: Mapping[str, Any], key: str) -> tuple[int, int]:
        return episode[f"videos/{key}/chunk_index"], episode[f"videos/{key}/file_index"]


def _write_rows(version: DatasetVersion, folder: Path) -> list[dict[str, int]]:
    """Data files; per episode the columns that say in which its rows are."""
    places, table = [], version.table("frames")
    for number, episodes in enumerate(_files(version, table)):
        place = {"chunk_index": number // FILES_PER_CHUNK, "file_index": number % FILES_PER_CHUNK}
        path = folder / lake_meta.DATA_PATH.format(**place)
        path.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(path, rows_of(version, table, episodes[0]).schema, compression="snappy") as writer:
            for episode in episodes:
                writer.write_table(rows_of(version, table, episode))
                places.append({f"data/{name}": value for name, value in place.items()})
    return places


def _files(version: DatasetVersion, table: lance.LanceDataset) -> Iterator[list[dict[str, Any]]]:
    """Episodes that share a data file; all rows are as wide as the first."""
    most = max(1, DATA_BYTES // max(1, rows_of(version, table, version.episodes[0]).slice(0, 1).nbytes))
    together: list[dict[str, Any]] = []
    for episode in version.episodes:
        if together and sum(each["length"] for each in together) + episode["length"] > most:
            yield together
            together = []
        together.append(episode)
    yield together


def rows_of(version: DatasetVersion, table: lance.LanceDataset, episode: dict[str, Any]) -> pa.Table:
    """Rows of an episode under LeRobot's names and in its form: a vector of one number is that number."""
    columns = [lake_name(key) for key in version.columns]
    rows = table.to_table(columns=columns, offset=episode["dataset_from_index"], limit=episode["length"])
    return pa.table({key: _plain(rows[lake_name(key)].combine_chunks()) for key in version.columns})


def _plain(array: pa.Array) -> pa.Array:
    return array.flatten() if pa.types.is_fixed_size_list(array.type) and array.type.list_size == 1 else array
