"""The video tier: batches equal to those of the decoded tier, pixel by pixel, with nothing of the pictures stored."""

import multiprocessing
import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from data_lake.packing import TokenCount
from data_lake.preprocess import preprocess_view
from data_lake.samples import Batch, SampleTable
from data_lake.video import index_bytes
from data_lake.view import read_view
from errors import UserError
from tests.data_lake.conftest import CodedLake
from tests.data_lake.lake_fixture import RECORDED, mp4, request_for, write_dataset, write_view

TOKENS = TokenCount(tokens_per_view=4, state_tokens=1, action_horizon=8)


@pytest.fixture(scope="module")
def out(coded: CodedLake) -> Path:
    folder = coded.out.parent / "video"
    folder.mkdir()
    request = request_for(heldout_episodes=(16,), images="video")
    made = preprocess_view(coded.view, coded.dataset, request, folder)
    assert made.num_views == coded.made.num_views
    assert "black_images" not in made.marks
    return folder


def batch_of(folder: Path, order: list[int]) -> Batch:
    return SampleTable(folder).batch(0, [np.array(order[:9]), np.array(order[9:])], TOKENS)


def test_batches_are_those_of_the_decoded_tier(coded: CodedLake, out: Path) -> None:
    """Episodes that lack a view included, in random order."""
    number = coded.made.num_samples
    order = np.random.default_rng(0).permutation(number).tolist()
    decoded, video = batch_of(coded.out, order), batch_of(out, order)
    assert len(decoded.images) == coded.made.num_views
    for field in fields(Batch):
        assert np.array_equal(getattr(decoded, field.name), getattr(video, field.name)), field.name


@pytest.mark.parametrize(
    "declared", [{"colour_order": "bgr"}, {"image_orientation": "upside_down"}], ids=["bgr", "upside down"]
)
def test_pixels_are_put_upright_as_declared(coded: CodedLake, declared: dict[str, str], tmp_path: Path) -> None:
    write_view(tmp_path / "view", RECORDED, coded.view.vector, **declared)
    view, batches = read_view(tmp_path / "view"), []
    for images in ("decoded", "video"):
        folder = tmp_path / images
        folder.mkdir()
        preprocess_view(view, coded.dataset, request_for(images=images), folder)
        batches.append(batch_of(folder, list(range(24))))
    assert np.array_equal(batches[0].images, batches[1].images)


def test_no_pixel_is_stored(out: Path) -> None:
    names = SampleTable(out).samples.schema.names
    assert not [name for name in names if name in ("view_top", "view_corner")]
    assert {"view_top_video", "view_top_at_s", "view_corner_video", "view_corner_at_s"} <= set(names)


def test_read_in_a_process_of_its_own(coded: CodedLake, out: Path) -> None:
    table = SampleTable(out)
    table.batch(0, [np.array([0])], TOKENS)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = pool.submit(images_of, table, [5, 2]).result(timeout=60)
    assert np.array_equal(found, images_of(SampleTable(coded.out), [5, 2]))


def images_of(table: SampleTable, ids: list[int]) -> np.ndarray:
    return table.batch(0, [np.array(ids)], TOKENS).images


def test_a_lake_that_is_moved_keeps_its_samples(coded: CodedLake, tmp_path: Path) -> None:
    shutil.copytree(coded.dataset, tmp_path / "old/dataset")
    (tmp_path / "old/out").mkdir()
    preprocess_view(coded.view, tmp_path / "old/dataset", request_for(images="video"), tmp_path / "old/out")
    (tmp_path / "old").rename(tmp_path / "new")
    assert len(images_of(SampleTable(tmp_path / "new/out"), [0])) == 2


def test_frames_that_a_video_lacks_are_found_before_training(coded: CodedLake, tmp_path: Path) -> None:
    """An episode said to be longer than its video."""
    late = replace(coded.view.episodes[-1], spans=tuple(replace(s, from_s=9.0) for s in coded.view.episodes[-1].spans))
    view = replace(coded.view, episodes=(*coded.view.episodes[:-1], late))
    where = rf"(?s)DECODE-004.*episode {late.episode_index} · view \w+ · video .*, file \d+ "
    with pytest.raises(UserError, match=where):
        preprocess_view(view, coded.dataset, request_for(images="video"), tmp_path)


def test_a_broken_video_is_told_with_its_episode_and_what_finds_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keyframe in the middle of episode 3 is no packet; with the decoded tier preprocessing says so, with the video
    tier training does."""

    def broken(images: list[np.ndarray], fps: float) -> bytes:
        content = mp4(images, fps)
        index = index_bytes(content)
        place = index.keyframe_bytes[index.keyframes.index(25)]
        return content[:place] + b"\xff" * 40 + content[place + 40 :]

    monkeypatch.setattr("tests.data_lake.lake_fixture.mp4", broken)
    vector = write_dataset(tmp_path / "cart", RECORDED)
    write_view(tmp_path / "view", RECORDED, vector)
    view = read_view(tmp_path / "view")
    for images in ("decoded", "video"):
        (tmp_path / images).mkdir()
    with pytest.raises(UserError) as told_before:
        preprocess_view(view, tmp_path / "cart", request_for(), tmp_path / "decoded")
    preprocess_view(view, tmp_path / "cart", request_for(images="video"), tmp_path / "video")
    with pytest.raises(UserError) as told_later:
        batch_of(tmp_path / "video", list(range(24)))
    for error in (told_before.value, told_later.value):
        assert error.code == "DECODE-002" and error.next_step == "./vlaloop doctor cart --deep"
        assert error.where.startswith("episode 3") and "file 3 · " in error.where
