"""The video tier of samples: no pixels are stored; each is decoded and prepared when its sample is read.

A sample says for each view which mp4 of the data set holds it and at which second; the card says what makes a picture
of it. The pixels are those of the decoded tier, bit by bit.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from data_lake.decode import upright_rgb
from data_lake.files import LakePath
from data_lake.pixels import fresh_pixels
from data_lake.request import Request
from data_lake.video_reader import VideoReader
from data_lake.view import DatasetView, ViewEpisode
from errors import UserError
from lookup import lookup


def video_columns(view: str) -> tuple[str, str]:
    """Columns of samples.lance that say where the picture of a view is: row of the videos' table, second in the mp4."""
    return f"view_{view}_video", f"view_{view}_at_s"


def video_fields(views: Sequence[str]) -> list[pa.Field]:
    return [
        pa.field(name, kind)
        for view in views
        for name, kind in zip(video_columns(view), (pa.int32(), pa.float64()), strict=True)
    ]


class VideoPlaces:
    """Writes where the pictures of `view` are, for samples in `out`; each is known to be in its mp4's index."""

    def __init__(self, view: DatasetView, dataset: LakePath, request: Request, out: Path) -> None:
        self.view, self.views = view, request.inputs["views"]
        videos = dataset / "videos.lance"
        self._reader = VideoReader(str(videos), view.vector["videos"])
        self.card = {
            "videos": _from_slot(videos, out),
            "version": view.vector["videos"],
            "fps": view.meaning["fps"],
            "colour_order": view.meaning["colour_order"],
            "image_orientation": view.meaning["image_orientation"],
            "prepare": request.functions.prepare_view,
        }

    def columns(self, episode: ViewEpisode, frames_N: np.ndarray) -> dict[str, Any]:
        """Values of video_fields for frames of an episode; None for a view that it lacks. Raises UserError PREP-006
        and DECODE-004 for a video, or a frame of it, that is not there, LAKE-073 for one that is not what came in."""
        spans = {span.view: span for span in episode.spans}
        found: dict[str, Any] = {}
        for view in self.views:
            row_name, at_name = video_columns(view)
            found[row_name] = found[at_name] = [None] * len(frames_N)
            if (span := spans.get(view)) is None:
                continue
            where = f"episode {episode.episode_index} · view {view}"
            row = self._reader.videos.row(span.place)
            self._reader.videos.ensure_recorded(row, where)
            found[row_name] = np.full(len(frames_N), row)
            found[at_name] = span.from_s + frames_N / self.view.meaning["fps"]
            try:
                self._reader.runs(found[row_name], found[at_name], self.view.meaning["fps"])
            except UserError as error:
                told = {"where": f"{where} · {error.where}", "next_step": error.next_step}
                raise UserError(error.code, error.message, **told) from error
        return found


def _from_slot(videos: LakePath, out: Path) -> str:
    """The way from `out` to the table of videos: a lake that is moved keeps its samples. On an object store `out` is in
    the mirror, which is laid out as the lake is: {lake}/preprocess/{fingerprint}/attempts/{n}."""
    if isinstance(videos, Path):
        return Path(os.path.relpath(videos, out)).as_posix()
    return f"../../../../datasets/{videos.parent.name}/{videos.name}"


def _beside(folder: LakePath, way: str) -> LakePath:
    """Where `way` leads from `folder`; an object store knows no `..`."""
    up = way.count("../")
    return (folder.parents[up - 1] if up else folder) / way.removeprefix("../" * up)


class VideoTier:
    """Reads what VideoPlaces wrote beside the samples of `folder`, with `threads` threads (0: one per core). Picklable,
    and may be used by several threads."""

    def __init__(self, folder: LakePath, card: dict[str, Any], threads: int = 0) -> None:
        self.inputs, self.video = card["inputs"], card["video"]
        self._reader = VideoReader(str(_beside(folder, self.video["videos"])), self.video["version"], threads)

    def images(self, table: pa.Table, back_N: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Prepared (I, S, S, 3) pixels with the sample and the slot of each, ordered by sample, then by slot; sample n
        is row back_N[n] of `table`."""
        places = [[table[name] for name in video_columns(view)] for view in self.inputs["views"]]
        rows_NV, at_NV = (
            np.stack([column.fill_null(-1).to_numpy() for column in columns], axis=1)[back_N]
            for columns in zip(*places, strict=True)
        )
        image_sample, image_view = np.nonzero(rows_NV >= 0)
        size = self.inputs["image_size"]
        images = fresh_pixels(len(image_sample), size, size, 3)
        prepare = lookup({}, self.video["prepare"], "function")

        def put(place: int, image: np.ndarray) -> None:
            upright = upright_rgb(image, self.video["colour_order"], self.video["image_orientation"])
            images[place] = prepare(upright, self.inputs)

        wanted = image_sample, image_view
        self._reader.read(rows_NV[wanted], at_NV[wanted], self.video["fps"], put)
        return images, image_sample.astype(np.int32), image_view.astype(np.int32)
