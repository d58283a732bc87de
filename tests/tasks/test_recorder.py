"""Recording: pixels come back as they went in, half an episode is none."""

import json
from pathlib import Path

import av
import numpy as np
import pytest

from data_lake.pictures import LosslessVideo
from model_core.sim.rollout import Frame
from tasks.recorder import MARKER, ROWS, EpisodeWriter, read_episode, write_watchable


def pictures(num: int, seed: int = 0) -> np.ndarray:
    """Noise: the hardest picture for a codec."""
    return np.random.default_rng(seed).integers(0, 256, (num, 48, 64, 3), dtype=np.uint8)


def decoded(path: Path) -> np.ndarray:
    with av.open(path) as container:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])


def frames(shown: np.ndarray, every: int) -> list[Frame]:
    return [
        Frame(
            lane=0,
            step=step,
            proprio=np.full(4, step, np.float32),
            views={"top": shown[step // every], "corner": shown[step // every][::-1]} if step % every == 0 else None,
            label=np.full(4, 0.5, np.float32),
            executed=np.full(4, 0.25, np.float32),
            success=step == 9,
        )
        for step in range(10)
    ]


def test_video_is_lossless(tmp_path: Path) -> None:
    shown = pictures(90)
    shown[40] = 0
    shown[41] = 255
    video = LosslessVideo(tmp_path / "a.mp4", 80.0)
    for picture in shown:
        video.add(picture)
    video.close()
    assert np.array_equal(decoded(tmp_path / "a.mp4"), shown)
    with av.open(tmp_path / "a.mp4") as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, float(stream.average_rate)) == ("h264", 80.0)
        stamps = [frame.time for frame in container.decode(stream)]
    assert stamps == pytest.approx(np.arange(90) / 80)


def test_the_same_pictures_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        video = LosslessVideo(tmp_path / f"{name}.mp4", 80.0)
        for picture in pictures(5):
            video.add(picture)
        video.close()
    assert (tmp_path / "a.mp4").read_bytes() == (tmp_path / "b.mp4").read_bytes()


def test_a_video_begins_with_a_picture(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="first frame"):
        LosslessVideo(tmp_path / "a.mp4", 80.0).add(None)


def test_an_episode_comes_back(tmp_path: Path) -> None:
    shown = pictures(3)
    writer = EpisodeWriter(tmp_path / "0-7", views=["top", "corner"], fps=80.0)
    for frame in frames(shown, 4):
        writer.add(frame)
    assert read_episode(tmp_path / "0-7") is None
    writer.finish({"seed": 7, "success": True, "steps": 10, "simulator": {}})
    episode = read_episode(tmp_path / "0-7")
    assert episode is not None
    assert (episode.seed, episode.success, episode.steps) == (7, True, 10)
    assert np.array_equal(episode.rows["state"][:, 0], np.arange(10))
    assert episode.rows["executed"].mean() == 0.25
    assert episode.rows["success"].tolist() == [False] * 9 + [True]
    held = decoded(episode.videos["top"])
    assert np.array_equal(held, np.repeat(shown, 4, axis=0)[:10])
    assert np.array_equal(decoded(episode.videos["corner"]), held[:, ::-1])
    assert episode.levels["top"].sum() == shown.size
    assert episode.levels["top"][1, 200] == (shown[..., 1] == 200).sum()


def test_a_view_that_is_not_wanted_is_not_recorded(tmp_path: Path) -> None:
    writer = EpisodeWriter(tmp_path / "0-7", views=["top"], fps=80.0)
    for frame in frames(pictures(3), 4):
        writer.add(frame)
    writer.finish({"seed": 7, "success": True, "steps": 10, "simulator": {}})
    episode = read_episode(tmp_path / "0-7")
    assert episode is not None
    assert list(episode.videos) == ["top"]
    assert not (tmp_path / "0-7" / "corner.mp4").exists()


@pytest.mark.parametrize("damage", ["no marker", "short video", "no rows"])
def test_half_an_episode_is_none(tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "0-1"
    writer = EpisodeWriter(folder, views=["top"], fps=80.0)
    for frame in frames(pictures(3), 4):
        writer.add(frame)
    writer.finish({"seed": 1, "success": True, "steps": 10, "simulator": {}})
    assert json.loads((folder / MARKER).read_text())["seed"] == 1
    if damage == "no marker":
        (folder / MARKER).unlink()
    elif damage == "short video":
        (folder / "top.mp4").write_bytes((folder / "top.mp4").read_bytes()[:-1])
    else:
        (folder / ROWS).unlink()
    assert read_episode(folder) is None


def test_films_play_in_browsers(tmp_path: Path) -> None:
    write_watchable(tmp_path / "a.mp4", list(pictures(12)), 20.0)
    with av.open(tmp_path / "a.mp4") as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert sum(1 for _ in container.decode(stream)) == 12
    head = (tmp_path / "a.mp4").read_bytes()[:2000]
    assert head.index(b"moov") < 100  # the index comes first, so that playing starts at once
