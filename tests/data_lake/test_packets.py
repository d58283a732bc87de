"""Packets of mp4s: their table against what demuxing says, decoders lent by codec, runs of any codec."""

import io
from collections.abc import Sequence

import av
import numpy as np
import pytest

from data_lake.decode import frames, rgb
from data_lake.packets import Codec, Decoders, decode_run, index_packets
from data_lake.trial import Trial, decode_all
from data_lake.video import index_bytes
from errors import UserError
from tests.data_lake.lake_fixture import coded_image, mp4

CODECS = ("libx264", "libx264rgb", "libx265", "libsvtav1", "mpeg4")


def moving(count: int) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.integers(0, 256, (64, 64, 3), np.uint8) // 32 * 8 + 7 * number % 64 for number in range(count)]


def with_b_frames(images: Sequence[np.ndarray], form: str = "mp4", fps: int = 20, **options: str) -> bytes:
    content = io.BytesIO()
    with av.open(content, "w", format=form, options=options) as container:
        stream = container.add_stream("libx264", rate=fps, options={"bf": "3", "g": "8", "x264-params": "scenecut=0"})
        stream.height, stream.width, stream.pix_fmt = *images[0].shape[:2], "yuv420p"
        for image in images:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image.astype(np.uint8), format="rgb24")))
        container.mux(stream.encode())
    return content.getvalue()


def cut_off(content: bytes, count: int, fps: int = 20) -> bytes:
    """The same packets in an mp4 whose edit list begins `count` frames later, between two keyframes."""
    cut = io.BytesIO()
    with av.open(io.BytesIO(content)) as source, av.open(cut, "w", format="mp4") as container:
        video = source.streams.video[0]
        stream = container.add_stream_from_template(video)
        for packet in source.demux(video):
            if packet.pts is None or packet.dts is None or packet.time_base is None:
                continue
            shift = round(count / (fps * packet.time_base))
            packet.pts, packet.dts, packet.stream = packet.pts - shift, packet.dts - shift, stream
            container.mux(packet)
    return cut.getvalue()


def in_turn(content: bytes, count: int, fps: int = 20) -> list[np.ndarray]:
    """The oracle: every frame, decoded from the first on."""
    wanted = range(count)
    return [image for _, image in frames(io.BytesIO(content), from_s=0, to_s=None, fps=fps, wanted=wanted)]


def at_random(content: bytes, order: Sequence[int]) -> list[np.ndarray]:
    packets, decoders, found = index_packets(io.BytesIO(content), "here"), Decoders(2), []
    places = packets.at(np.array(order) / 20, 0.025)
    for first, last in zip(packets.begins(places).tolist(), places.tolist(), strict=True):
        run = [
            (int(packets.ticks_N[p]), content[packets.offset_N[p] : packets.offset_N[p] + packets.size_N[p]])
            for p in range(first, last + 1)
        ]
        with decoders.lend(packets.codec) as decoder:
            ((_, frame),) = decode_run(decoder.context, run, [int(packets.ticks_N[last])])
            found.append(rgb(frame, decoder.converter))
    assert decoders.num_opened == 1
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_any_frame_is_that_of_decoding_in_turn(codec: str) -> None:
    content = mp4(moving(23), 20, codec)
    expected = in_turn(content, 23)
    order = np.random.default_rng(1).permutation(23).tolist()
    for number, image in zip(order, at_random(content, order), strict=True):
        assert np.array_equal(image, expected[number])


@pytest.mark.parametrize("options", [{}, {"movflags": "frag_keyframe+empty_moov"}], ids=["whole", "fragments"])
def test_reordered_packets_and_fragments(options: dict[str, str]) -> None:
    content = with_b_frames(moving(21), **options)
    packets = index_packets(io.BytesIO(content), "here")
    assert not np.array_equal(packets.ticks_N, np.sort(packets.ticks_N))  # there are B frames
    expected = in_turn(content, 21)
    order = [20, 3, 9, 8, 0, 15, 7]
    for number, image in zip(order, at_random(content, order), strict=True):
        assert np.array_equal(image, expected[number])


@pytest.mark.parametrize("codec", CODECS)
def test_the_table_is_what_demuxing_says(codec: str) -> None:
    content = mp4(moving(12), 20, codec)
    packets = index_packets(io.BytesIO(content), "here")
    with av.open(io.BytesIO(content), mode="r") as container:
        told = [(p.pts, p.pos, p.size, p.is_keyframe) for p in container.demux(video=0) if p.pts is not None]
    table = zip(packets.ticks_N, packets.offset_N, packets.size_N, packets.key_N, strict=True)
    assert [tuple(row) for row in table] == told


def test_no_packet_is_far_from_its_time() -> None:
    packets = index_packets(io.BytesIO(mp4([coded_image(0, n, "top") for n in range(4)], 20)), "here")
    assert packets.at(np.array([0.0, 0.051, 0.149, 0.2, -0.03]), 0.025).tolist() == [0, 1, 3, -1, -1]


def test_what_is_no_video_is_said() -> None:
    with pytest.raises(UserError, match="DECODE-002"):
        index_packets(io.BytesIO(b"no video at all" * 9), "here")


def test_an_mp4_without_a_frame_is_said() -> None:
    content = io.BytesIO()
    with av.open(content, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=20)
        stream.height = stream.width = 64
        container.start_encoding()
    with pytest.raises(UserError, match="DECODE-00[23]"):
        index_packets(io.BytesIO(content.getvalue()), "here")


def test_a_broken_packet_gives_no_picture_of_another() -> None:
    content = mp4(moving(5), 20, "libsvtav1")
    packets = index_packets(io.BytesIO(content), "here")
    with pytest.raises(av.FFmpegError), Decoders(1).lend(packets.codec) as decoder:
        list(decode_run(decoder.context, [(0, b"\x12\x00" + b"\xff" * 60)], [0]))


def test_decoders_wait_for_their_codec_and_no_more_than_the_limit_do() -> None:
    decoders = Decoders(2)
    codecs = [
        Codec(name="libdav1d", extradata=b"", size=(64, size), pix_fmt="yuv420p", colours=(2, 1, 2, 2))
        for size in (16, 32, 64)
    ]
    for codec in codecs:
        with decoders.lend(codec) as decoder:
            assert decoder.context.height == codec.size[1]
    assert (decoders.num_opened, decoders.num_idle) == (3, 2)
    with decoders.lend(codecs[2]) as one, decoders.lend(codecs[2]) as other:
        assert one is not other
    assert (decoders.num_opened, decoders.num_idle) == (4, 2)
    with decoders.lend(codecs[0]):
        pass
    assert decoders.num_opened == 5  # the first one went when the third came


@pytest.mark.parametrize("count", [1, 3, 8, 11])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_frames_that_an_edit_list_cuts_off_count_for_nobody(count: int, bidirectional: bool) -> None:
    whole = with_b_frames(moving(23)) if bidirectional else mp4(moving(23), 20, "libx264")
    content, left = cut_off(whole, count), 23 - count
    index, packets = index_bytes(content), index_packets(io.BytesIO(content), "here")
    assert (len(index.times_s), int(packets.shown_N.sum())) == (left, left)
    np.testing.assert_allclose(index.times_s, np.arange(left) / 20)
    assert (min(index.keyframes) == -1) == bool(count % 8)
    assert decode_all(io.BytesIO(content)) == Trial()
    expected = in_turn(whole, 23)[count:]
    np.testing.assert_array_equal(in_turn(content, left), expected)
    np.testing.assert_array_equal(at_random(content, range(left)), expected)
