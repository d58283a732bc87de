"""LeRobot's native Lance layout: a v3.0 meta/ that says so, rows in frames.lance, mp4s in videos.lance.

What `lerobot-lance-convert` writes and `LanceDBDataset` opens (huggingface/lerobot, datasets/lance_backend.py).
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import lance
import pyarrow as pa

from data_lake.findings import Finding, finding
from data_lake.schema import lake_name
from data_lake.sources.episode import Part, VideoSpan
from data_lake.sources.files import Unreadable
from data_lake.sources.lerobot import LeRobotFolder, are_one_run, is_lance, rows_by_owner
from data_lake.sources.lerobot_v3 import VIDEO_PATH, list_v3
from data_lake.sources.listing import Listed, Listing, fill
from data_lake.specs import AS_THE_SOURCE_SAYS, ReadSpec
from errors import UserError

NAMES = ("frames.lance", "videos.lance")


class LeRobotLance(LeRobotFolder):
    """Reads each table at its latest version, as LeRobot does; an episode's rows are those that carry its number."""

    FORMAT: ClassVar[str] = "lerobot-lance"

    def __init__(self, path: Path, read: ReadSpec = AS_THE_SOURCE_SAYS) -> None:
        if not is_lance(path):
            raise _another_layout(path)
        with _readable(path / "frames.lance"):
            self._frames = lance.dataset(str(path / "frames.lance"))
            self._rows_of = rows_by_owner(self._frames.to_table(columns=["episode_index"]))
        super().__init__(path, read)
        listings = [several for _, group in self._parts for several in group]
        files = tuple(sorted(each for each in path.rglob("*") if each.is_file()))
        self._parts = [(Part(files=files), listings)]  # which bytes are whose is Lance's own business

    @staticmethod
    def recognises(path: Path) -> bool:
        """Also what looks like it and is not, so that it is named."""
        return is_lance(path) or any((folder / NAMES[0]).is_dir() for folder in (path, path / "data"))

    def _list(self, path: Path, info: Mapping[str, Any], version: str) -> Listing:
        has_videos = (path / "videos.lance").is_dir()
        stored = _stored_videos(path, info) if has_videos else {}
        listing = list_v3(path, info, has_videos=has_videos, stored_once=True)
        return replace(listing, episodes=tuple(_with_bytes(listed, stored) for listed in listing.episodes))

    def _rows(self, listed: Listed, listed_numbers: Collection[int]) -> tuple[pa.Table, list[Finding]]:
        unlisted, strange = [], sorted(self._rows_of.keys() - set(listed_numbers))
        if strange and listed.episode == next(iter(listed_numbers)):  # said once
            unlisted = [finding("LAKE-027", episode=number, file="frames.lance") for number in strange]
        rows = self._rows_of.get(listed.episode)
        try:
            if rows is None:
                table = self._frames.schema.empty_table()
            elif are_one_run(rows):
                table = self._frames.to_table(offset=int(rows[0]), limit=len(rows))
            else:
                table = self._frames.take(rows.tolist())
        except OSError as error:
            raise Unreadable("LAKE-022", str(error).splitlines()[0][:200]) from error
        dotted = {lake_name(key): key for key in self.card.features}
        return table.rename_columns([dotted.get(name, name) for name in table.column_names]), unlisted


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """While a table is looked at as a whole: UserError LAKE-136 when it cannot be."""
    try:
        yield
    except (Unreadable, ValueError, OSError) as error:
        detail = f"{error.code} {error.detail}" if isinstance(error, Unreadable) else str(error).splitlines()[0][:200]
        raise UserError(
            "LAKE-136",
            f"a table of the source cannot be opened: {detail}",
            where=str(path),
            done="nothing was read",
            next_step="copy the table again",
        ) from error


def _stored_videos(path: Path, info: Mapping[str, Any]) -> dict[Path, partial[bytes]]:
    """By the path that a v3.0 folder would give it, what reads each stored mp4."""
    template = str(info.get("video_path") or VIDEO_PATH)
    with _readable(path / "videos.lance"):
        table = lance.dataset(str(path / "videos.lance"))
        rows = table.to_table(columns=["video_key", "chunk_index", "file_index"]).to_pylist()
    filled = (fill(template, row) for row in rows)
    return {path / name: partial(_bytes, table, row) for row, name in enumerate(filled) if name is not None}


def _bytes(table: lance.LanceDataset, row: int) -> bytes:
    try:
        stored = table.take_blobs("video_bytes", indices=[row])[0]
        if stored is None:
            raise Unreadable("LAKE-010", f"row {row} of videos.lance is empty")
        with stored as blob:
            return blob.read()
    except OSError as error:
        raise Unreadable("LAKE-023", str(error).splitlines()[0][:200]) from error


def _with_bytes(listed: Listed, stored: Mapping[Path, partial[bytes]]) -> Listed:
    views: dict[str, VideoSpan] = {}
    absent = []
    for key, span in listed.views.items():
        if (read := stored.get(span.path)) is None:
            absent.append(finding("LAKE-010", span.path.name, episode=listed.episode, camera=key, file="videos.lance"))
        else:
            views[key] = replace(span, read=read)
    return replace(listed, views=views, findings=(*listed.findings, *absent))


def _another_layout(path: Path) -> UserError:
    """LAKE-135: Lance tables that LeRobot would not open either; which they are is not guessed."""
    ours = (path / "manifests").is_dir()
    below = (path / "data" / NAMES[0]).is_dir()
    what, next_step = "frames.lance without a meta/info.json that says storage_format: lance", "convert it again"
    if ours:
        what, next_step = "a data set of a lake", f"./vlaloop path {path.name} gives a folder to read"
    elif below:
        what = "tables under data/ without LeRobot's meta/, as the lance-format project's own example has them"
        next_step = "convert the LeRobot folder that they came from: lerobot-lance-convert --root FOLDER --out FOLDER"
    return UserError("LAKE-135", f"not LeRobot's Lance layout: {what}", where=str(path), next_step=next_step)
