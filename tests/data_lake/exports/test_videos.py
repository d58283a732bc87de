"""Cutting between packets: what is said to stand alone decodes alone, to the same pixels."""

from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_lake.decode import frames
from data_lake.exports.videos import Part, _cut, packets_of, packets_stand_alone
from data_lake.video import VideoIndex, index_video
from tests.data_lake.recordings import FPS, SIZE

NUM_FRAMES = 40
KINDS = {
    "closed": {"g": "8", "bf": "2", "x264-params": "open-gop=0:scenecut=0:b-adapt=0"},
    "open": {"g": "8", "bf": "2", "x264-params": "open-gop=1:scenecut=0:b-adapt=0"},
    "no-b": {"g": "5", "bf": "0", "x264-params": "scenecut=0"},
}


@pytest.fixture(scope="module", params=sorted(KINDS))
def video(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, VideoIndex]:
    """Noise, so that every frame differs and B-frames are made."""
    path = tmp_path_factory.mktemp("video") / f"{request.param}.mp4"
    random = np.random.default_rng(7)
    still = random.integers(0, 256, (SIZE, SIZE, 3), np.uint8)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS, options=KINDS[request.param])
        stream.width = stream.height = SIZE
        stream.pix_fmt = "yuv420p"
        for number in range(NUM_FRAMES):
            picture = np.roll(still, number, axis=1)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode(None))
    return path, index_video(path)


def pictures(path: Path, first: int, count: int) -> list[bytes]:
    with path.open("rb") as file:
        found = frames(file, from_s=first / FPS, to_s=None, fps=FPS, wanted=range(count))
        return [image.tobytes() for _, image in found]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.integers(0, NUM_FRAMES - 1), count=st.integers(1, NUM_FRAMES))
def test_a_cut_decodes_to_the_same_pixels(
    video: tuple[Path, VideoIndex], tmp_path_factory: pytest.TempPathFactory, first: int, count: int
) -> None:
    path, index = video
    count = min(count, NUM_FRAMES - first)
    target = tmp_path_factory.mktemp("cut") / "part.mp4"
    part = Part(episode=0, from_s=first / FPS, to_s=(first + count) / FPS, target=target)
    packets = packets_of(index, part, FPS)
    assert len(packets) == count
    if not packets_stand_alone(index, packets):
        return
    _cut(path, [(part, packets)])
    cut = index_video(target)
    assert np.array_equal(cut.packets, index.packets[packets]) and cut.times_s[0] == 0
    np.testing.assert_allclose(cut.times_s, np.arange(count) / FPS, atol=1e-6)
    assert pictures(target, 0, count) == pictures(path, first, count)


def test_which_spans_stand_alone(video: tuple[Path, VideoIndex]) -> None:
    """From a keyframe to the frame before the next one, save in open groups; never from between two."""
    path, index = video

    def alone(first: int, end: int) -> bool:
        part = Part(episode=0, from_s=first / FPS, to_s=end / FPS, target=path)
        return packets_stand_alone(index, packets_of(index, part, FPS))

    assert alone(0, NUM_FRAMES)
    second, third = index.keyframes[1:3]
    assert alone(second, third) is (path.stem != "open")
    assert not alone(second + 1, third) and not alone(1, NUM_FRAMES)
