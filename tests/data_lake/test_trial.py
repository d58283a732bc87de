"""Trial decoding tells a codec that is absent from a file that is broken (D12), and finds flipped bits."""

from pathlib import Path

import av
import numpy as np
import pytest

from data_lake.trial import Trial, decode_all, decode_first
from data_lake.video import index_video
from tests.data_lake.recordings import FPS, SIZE, colour, write_video

NUM_FRAMES = 20


@pytest.fixture
def video(tmp_path: Path) -> Path:
    path = tmp_path / "a.mp4"
    write_video(path, [colour(0, frame) for frame in range(NUM_FRAMES)])
    return path


def put_fourcc(path: Path, fourcc: bytes) -> None:
    content = bytearray(path.read_bytes())
    place = content.index(b"avc1", content.index(b"stsd"))
    content[place : place + 4] = fourcc
    path.write_bytes(content)


def packets(path: Path) -> list[tuple[int, int]]:
    with av.open(str(path)) as container:
        return [(item.pos or 0, item.size) for item in container.demux(video=0) if item.pts is not None]


def test_a_sound_video(video: Path) -> None:
    assert decode_first(str(video)) == decode_all(str(video)) == Trial()


@pytest.mark.parametrize("fourcc", [b"evc1", b"zz01"])
def test_a_codec_without_decoder_is_not_a_broken_file(fourcc: bytes, video: Path) -> None:
    put_fourcc(video, fourcc)
    for trial in (decode_first(str(video)), decode_all(str(video))):
        assert trial.absent and not trial.broken_s
    index = index_video(video)
    assert (index.codec, index.width, index.height) == (fourcc.decode(), SIZE, SIZE)
    assert len(index.times_s) == NUM_FRAMES


@pytest.mark.parametrize("frame", [0, 7, 19])
def test_a_spoiled_packet_is_found_at_its_time(frame: int, video: Path) -> None:
    place, size = packets(video)[frame]
    content = bytearray(video.read_bytes())
    content[place + 6 : place + size] = bytes(byte ^ 0xFF for byte in content[place + 6 : place + size])
    video.write_bytes(content)
    trial = decode_all(str(video))
    assert trial.told and trial.broken_s[0] == pytest.approx(frame / FPS)
    assert len(index_video(video).times_s) == NUM_FRAMES, "demuxing alone does not see it"


def test_the_first_frame_alone_does_not_see_a_later_one(video: Path) -> None:
    place, size = packets(video)[12]
    content = bytearray(video.read_bytes())
    content[place + 6 : place + size] = np.random.default_rng(0).bytes(size - 6)
    video.write_bytes(content)
    assert decode_first(str(video)) == Trial() and decode_all(str(video)).broken_s


def test_av1_as_recorders_write_it(shared_data: Path) -> None:
    path = shared_data / "video-labeled-frames-av1/labeled_frames_video.mp4"
    assert decode_all(str(path)) == Trial()
