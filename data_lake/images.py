"""The sampled images of one episode's view, decoded one after the other and prepared as the policy sees them."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from data_lake.decode import frames, upright_rgb
from data_lake.stored_videos import Videos, open_videos
from data_lake.view import Span
from errors import UserError
from lookup import lookup


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageSource:
    """Where the mp4s are, how their pixels are declared, and what makes an image of a policy's view of them.

    prepare: dotted name of a function (image (H, W, 3) uint8, inputs) -> (S, S, 3) uint8. fps: of the rows.
    """

    videos_uri: str
    videos_version: int
    colour_order: str
    image_orientation: str
    fps: float
    prepare: str
    inputs: dict[str, Any]


def prepared_images(
    source: ImageSource, span: Span, wanted: Sequence[int], episode_index: int
) -> Generator[tuple[np.ndarray, bool], None, None]:
    """(prepared image (S, S, 3) uint8, whether the source image is black) of each frame `wanted` of an episode's span.

    Holds one image at a time. Raises UserError LAKE-073 when the video is not what came in, DECODE-…, naming episode,
    view and mp4.
    """
    prepare = lookup({}, source.prepare, "function")
    where = f"episode {episode_index} · view {span.view}"
    videos = open_videos(source.videos_uri, source.videos_version)
    row = videos.row(span.place)
    videos.ensure_recorded(row, where)
    named = f"{where} · {videos.named(row)}"
    with videos.open(row, where) as file, _told_by(videos):
        found = frames(file, from_s=span.from_s, to_s=span.to_s, fps=source.fps, wanted=wanted, where=named)
        for _, image in found:
            yield (
                prepare(upright_rgb(image, source.colour_order, source.image_orientation), source.inputs),
                not image.any(),
            )


@contextmanager
def _told_by(videos: Videos) -> Iterator[None]:
    """What is wrong with a video of the lake, doctor finds in all of them."""
    try:
        yield
    except UserError as error:
        if not error.code.startswith("DECODE-"):
            raise
        raise UserError(error.code, error.message, where=error.where, next_step=videos.doctor) from error
