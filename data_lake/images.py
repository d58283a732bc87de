"""Decode and prepare the sampled images of many episodes on Daft: one job per episode and view.

Each job reads its mp4 from the lake itself, so that it runs in any process or on any node. Failures come back
as values and are raised in the order of the jobs, whichever finished first.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import daft
import numpy as np

from data_lake.decode import frames, upright_rgb
from data_lake.view import open_video
from errors import UserError
from lookup import lookup

BATCHES_PER_WORKER = 4  # episodes differ in length; small batches let workers end together
RESULT = daft.DataType.struct(
    {"images": daft.DataType.binary(), "num_black": daft.DataType.int64(), "error": daft.DataType.string()}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageJob:
    """The frames `wanted` of one episode's view, the first at from_s of an mp4."""

    episode_index: int
    view: str
    video_key: str
    chunk_index: int
    file_index: int
    from_s: float
    to_s: float | None
    fps: float
    wanted: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageSource:
    """Where the mp4s are, how their pixels are declared, and what makes an image of a policy's view of them.

    prepare: dotted name of a function (image (H, W, 3) uint8, inputs) -> (S, S, 3) uint8.
    """

    videos_uri: str
    videos_version: int
    colour_order: str
    image_orientation: str
    prepare: str
    inputs: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Images:
    """pixels (N, S, S, 3) uint8, upright RGB; num_black: source images without any light."""

    pixels: np.ndarray
    num_black: int


def prepared_images(jobs: Sequence[ImageJob], source: ImageSource, workers: int) -> list[Images]:
    """Images of each job, in order. Raises the UserError of the first job that failed."""
    if not jobs:
        return []
    size = source.inputs["image_size"]
    plan = daft.from_pydict({"job": [json.dumps(asdict(job)) for job in jobs]})
    plan = plan.into_batches(-(-len(jobs) // (BATCHES_PER_WORKER * workers)))
    found = plan.select(_prepare(daft.col("job"), daft.lit(json.dumps(asdict(source)))))
    images = []
    (results,) = found.to_pydict().values()
    for result in results:
        if result["error"] is not None:
            failed = json.loads(result["error"])
            raise UserError(failed.pop("code"), failed.pop("message"), **failed)
        pixels = np.frombuffer(result["images"], np.uint8).reshape(-1, size, size, 3)
        images.append(Images(pixels=pixels, num_black=result["num_black"]))
    return images


@daft.func(return_dtype=RESULT)
def _prepare(job_json: str, source_json: str) -> dict[str, Any]:
    job, source = ImageJob(**json.loads(job_json)), ImageSource(**json.loads(source_json))
    try:
        return {**_decode(job, source), "error": None}
    except UserError as error:
        fields = {"code": error.code, "message": error.message, "where": error.where, "next_step": error.next_step}
        return {"images": None, "num_black": 0, "error": json.dumps(fields)}


def _decode(job: ImageJob, source: ImageSource) -> dict[str, Any]:
    prepare = lookup({}, source.prepare, "function")
    pieces, num_black = [], 0
    where = f"episode {job.episode_index} · view {job.view}"
    place = (job.video_key, job.chunk_index, job.file_index)
    with open_video(source.videos_uri, source.videos_version, *place, where=where) as file:
        for _, image in frames(file, from_s=job.from_s, to_s=job.to_s, fps=job.fps, wanted=job.wanted, where=where):
            num_black += not image.any()
            pieces.append(prepare(upright_rgb(image, source.colour_order, source.image_orientation), source.inputs))
    return {"images": b"".join(piece.tobytes() for piece in pieces), "num_black": num_black}
