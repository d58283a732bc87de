"""Videos that units of a cluster write: each reads, verifies, writes and syncs SHELF_BYTES at most, or one video.

Here a list holds paths, and bytes of those alone that are no file; `cluster.workers` lists are under way at most.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lance.fragment import FragmentMetadata

from data_lake.cluster import Cluster
from data_lake.files import LakePath, sync
from data_lake.shelf import SHELF_BYTES, Content, InOrder, Shelf, Write, files_of


class ShelvesAfar(InOrder):
    """As `Shelves`. What a unit wrote before its node died is in no version: gc removes it."""

    def __init__(self, folder: LakePath, write: Write, cluster: Cluster) -> None:
        """write: a function that both sides can import."""
        super().__init__()
        self._work = partial(write_shelf, folder, write)
        self._cluster = cluster
        self._filling: list[tuple[Content, Mapping[str, Any]]] = []
        self._num_bytes = 0

    def put(self, content: Content, row: Mapping[str, Any]) -> None:
        """One video with its other columns; `row` tells its file_size and blake3.

        Raises Transient when an earlier one was no longer what was examined.
        """
        if self._filling and self._num_bytes + row["file_size"] > SHELF_BYTES:
            self._turn()
        self._filling.append((content, row))
        self._num_bytes += row["file_size"]

    def finish(self) -> list[FragmentMetadata]:
        """All fragments, each on disk for good."""
        self._turn()
        while self._written:
            self._take()
        return self._durable

    def _turn(self) -> None:
        """Hand the list over as soon as one fewer than may be is under way."""
        if self._filling:
            while len(self._written) >= self._cluster.workers:
                self._take()
            self._written.append((len(self._filling), self._cluster.submit(self._work, self._filling)))
            self._filling, self._num_bytes = [], 0
        self.durable()  # raises what went wrong meanwhile


def write_shelf(
    folder: LakePath, write: Write, videos: Sequence[tuple[Content, Mapping[str, Any]]]
) -> list[FragmentMetadata]:
    """Fragments of `videos` in the table at `folder`, on disk for good. Raises Transient when one is no longer what was
    examined."""
    shelf = Shelf(memory=bytearray(sum(row["file_size"] for _, row in videos)))
    for content, row in videos:
        shelf.add(content, row)
    shelf.verify()
    fragments = write(shelf.table())
    for file in files_of(folder, fragments):
        sync(file)
    return fragments
