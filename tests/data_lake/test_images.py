"""Images through Daft: in the order of the jobs, upright RGB, and the first failure as itself."""

from dataclasses import replace

import numpy as np
import pytest

from data_lake.images import ImageJob, ImageSource, prepared_images, upright_rgb
from errors import UserError
from tests.data_lake.conftest import CodedLake


def source_of(coded: CodedLake, **changes: str) -> ImageSource:
    fields = {"colour_order": "rgb", "image_orientation": "upright"} | changes
    return ImageSource(
        videos_uri=str(coded.dataset / "videos.lance"),
        videos_version=coded.view.vector["videos"],
        prepare="tests.data_lake.model_functions:prepare_view",
        inputs={"image_size": 16},
        **fields,
    )


def job_of(number: int, coded: CodedLake, *wanted: int) -> ImageJob:
    """Some frames of the first view of an episode."""
    episode = coded.view.episodes[number]
    span = episode.spans[0]
    return ImageJob(
        episode_index=number,
        view=span.view,
        video_key=span.video_key,
        chunk_index=span.chunk_index,
        file_index=span.file_index,
        from_s=span.from_s,
        to_s=span.to_s,
        fps=80.0,
        wanted=wanted,
    )


@pytest.mark.parametrize("workers", [1, 3])
def test_images_in_the_order_of_the_jobs(coded: CodedLake, workers: int) -> None:
    jobs = [job_of(3, coded, 11), job_of(0, coded, 0, 8), job_of(5, coded, 2, 3, 6)]
    found = prepared_images(jobs, source_of(coded), workers)
    assert [images.pixels[:, 0, 0, :2].tolist() for images in found] == [
        [[4, 11]], [[1, 0], [1, 8]], [[6, 2], [6, 3], [6, 6]],
    ]  # fmt: skip


def test_declared_bgr_is_put_right(coded: CodedLake) -> None:
    (images,) = prepared_images([job_of(3, coded, 11)], source_of(coded, colour_order="bgr"), 1)
    assert images.pixels[0, 0, 0].tolist() == [100, 11, 4]


def test_upside_down_is_turned_by_half() -> None:
    """0 1 / 2 3 becomes 3 2 / 1 0."""
    image = np.arange(4, dtype=np.uint8).reshape(2, 2, 1).repeat(3, axis=2)
    assert upright_rgb(image, "rgb", "upside_down")[..., 0].tolist() == [[3, 2], [1, 0]]
    assert np.array_equal(upright_rgb(image, "rgb", "upright"), image)


def test_the_first_failure_in_the_order_of_jobs_is_raised(coded: CodedLake) -> None:
    jobs = [job_of(0, coded, 0), job_of(3, coded, 40), job_of(5, coded, 50)]
    with pytest.raises(UserError) as caught:
        prepared_images(jobs, source_of(coded), 2)
    assert (caught.value.code, caught.value.where.split(" · ")[:2]) == ("DECODE-004", ["episode 3", "view top"])
    with pytest.raises(UserError, match="PREP-006"):
        prepared_images([replace(jobs[0], file_index=9)], source_of(coded), 1)


def test_no_job_needs_no_daft(coded: CodedLake) -> None:
    assert prepared_images([], source_of(coded), 1) == []
