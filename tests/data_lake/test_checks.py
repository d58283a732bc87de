"""Each check of an episode's rows and spans, one defect at a time."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_lake.checks import check_rows, check_trial, check_video
from data_lake.schema import canonical, vectors
from data_lake.sources.episode import Episode, Feature, SourceCard, VideoSpan
from data_lake.trial import Trial
from data_lake.video import VideoIndex
from tests.data_lake.recordings import FPS, rows_of

CARD = SourceCard(
    root=Path("/source"),
    format="lerobot",
    version="v3.0",
    fps=FPS,
    robot="cart",
    features={
        "observation.state": Feature(dtype="float32", shape=(3,)),
        "action": Feature(dtype="float32", shape=(2,)),
        "next.done": Feature(dtype="bool", shape=(1,)),
    },
    cameras=("front",),
    num_episodes=1,
    instruction_source="task_index",
)


def changed(name: str, values: object) -> pa.Table:
    return rows_of(0, 5, 0).drop_columns([name]).append_column(name, pa.array(values))


def codes(rows: pa.Table, length: int | None = 5) -> list[str]:
    episode = Episode(source_episode=0, rows=rows, length=length)
    return [item.code for item in check_rows(episode, CARD)]


def test_sound_rows() -> None:
    assert codes(rows_of(0, 5, 0)) == []


STATES = [[0.0, 0.0, 0.0]] * 5


@pytest.mark.parametrize(
    ("name", "values", "code"),
    [
        ("observation.state", [*STATES[:4], [0.0, float("nan"), 0.0]], "LAKE-016"),
        ("observation.state", [*STATES[:4], [0.0, float("inf"), 0.0]], "LAKE-016"),
        ("observation.state", [*STATES[:4], [0.0, -1e39, 0.0]], "LAKE-016"),
        ("observation.state", [*STATES[:4], None], "LAKE-016"),
        ("observation.state", [*STATES[:4], [0.0, None, 0.0]], "LAKE-016"),
        ("observation.state", [*STATES[:4], [0.0, 0.0]], "LAKE-019"),
        ("observation.state", [[0.0, 0.0]] * 5, "LAKE-019"),
        ("observation.state", [[1, 2, 3]] * 5, "LAKE-019"),
        ("observation.state", ["1 2 3"] * 5, "LAKE-019"),
        ("timestamp", [0.0, 0.1, 0.1, 0.3, 0.4], "LAKE-017"),
        ("timestamp", [0.0, 0.2, 0.1, 0.3, 0.4], "LAKE-017"),
        ("timestamp", [1.0, 1.1, 1.2, 1.3, 1.4], "LAKE-047"),
        ("timestamp", [0.0, 0.11, 0.22, 0.33, 0.44], "LAKE-049"),
        ("timestamp", [0.0, 0.1, 0.2, 1.3, 1.4], "LAKE-058"),
        ("timestamp", [0.0, 0.05, 0.1, 0.15, 0.2], "LAKE-250"),
        ("timestamp", [3.0, 3.2, 3.4, 3.61, 3.8], "LAKE-250"),
        ("frame_index", [0, 1, 1, 3, 4], "LAKE-018"),
        ("frame_index", [0, 1, 3, 4, 5], "LAKE-018"),
        ("episode_index", [0, 0, 0, 0, 1], "LAKE-021"),
    ],
)
def test_a_defect_has_its_code(name: str, values: list[object], code: str) -> None:
    assert codes(changed(name, values)) == [code]


@pytest.mark.parametrize(
    ("name", "code"), [("frame_index", "LAKE-046"), ("action", "LAKE-025"), ("observation.state", "LAKE-025")]
)
def test_a_missing_column(name: str, code: str) -> None:
    assert codes(rows_of(0, 5, 0).drop_columns([name])) == [code]


@pytest.mark.parametrize(("length", "count", "code"), [(6, 5, "LAKE-012"), (0, 5, "LAKE-012"), (0, 0, "LAKE-020")])
def test_lengths(length: int, count: int, code: str) -> None:
    assert codes(rows_of(0, count, 0), length=length) == [code]


@given(value=st.floats(width=64), listed=st.booleans())
def test_what_the_lake_would_hold_is_finite(value: float, listed: bool) -> None:
    rows = rows_of(0, 2, 0).append_column("effort", pa.array([[0.0], [value]] if listed else [0.0, value]))
    stored = vectors(canonical(rows.drop_columns(["task_index"]))["effort"])
    assert stored is not None and np.isfinite(stored).all() == (codes(rows, length=2) == [])


def test_declared_rows_that_are_not_there() -> None:
    assert codes(rows_of(0, 0, 0), length=5) == ["LAKE-012"]


@pytest.mark.parametrize(
    ("values", "declared", "expected"),
    [
        (pa.array(["a"] * 5), "string", ["LAKE-252"]),
        (pa.array(["a"] * 5), "float32", ["LAKE-252", "LAKE-019"]),
        (pa.array([[[1.0, 2.0]] * 2] * 5), "float32", ["LAKE-252"]),
        (pa.array([{"x": 1}] * 5), "string", ["LAKE-252"]),
        (pa.nulls(5), "string", ["LAKE-252"]),
        (pa.array([b"a"] * 5), "string", ["LAKE-252"]),
        (pa.array([True] * 5), "bool", []),
        (pa.array([1, 2, 3, 4, 5], pa.uint8()), "uint8", []),
        (pa.array([1, 2, 3, 4, 5], pa.float64()), "float64", []),
        (pa.array([[1.0, 2.0]] * 5), "float32", []),
    ],
)
def test_columns_that_are_not_kept_are_named(values: pa.Array, declared: str, expected: list[str]) -> None:
    """Beside state and action, which must be vectors of numbers."""
    rows = rows_of(0, 5, 0).append_column("observation.extra", values)
    feature = Feature(dtype=declared, shape=(1,) if values.type != pa.list_(pa.float64()) else (2,))
    card = replace(CARD, features={**CARD.features, "observation.extra": feature})
    found = list(check_rows(Episode(source_episode=0, rows=rows, length=5), card))
    assert [item.code for item in found] == expected
    assert all("observation.extra" in item.message for item in found)
    assert ("observation_extra" in canonical(rows).column_names) == ("LAKE-252" not in expected)


def test_the_row_is_named() -> None:
    episode = Episode(source_episode=7, rows=changed("timestamp", [0.0, 0.1, 0.2, 0.2, 0.4]), file="a.parquet")
    found = next(item for item in check_rows(episode, CARD) if item.code == "LAKE-017")
    assert (found.episode, found.row, found.file) == (7, 3, "a.parquet")
    assert "0.2000 s after 0.2000 s" in found.message


def index(times: list[float]) -> VideoIndex:
    shown = np.asarray(times)
    return VideoIndex(
        digest="",
        num_bytes=0,
        codec="h264",
        height=1,
        width=1,
        times_s=shown,
        packets=np.zeros((len(shown), 32), np.uint8),
        shown_at_s=shown,
        keyframes=[0],
        keyframe_bytes=[0],
        moov=(0, 0),
        turned="",
    )


@pytest.mark.parametrize(
    ("from_s", "to_s", "num_frames", "codes"),
    [
        (0.0, None, 5, []),
        (0.0, None, 6, ["LAKE-011"]),
        (0.0, None, 4, ["LAKE-011"]),
        (0.0, 0.5, 20, []),
        (1.5, 2.0, 20, []),
        (1.6, 2.1, 20, ["LAKE-013"]),
        (5.0, 5.5, 20, ["LAKE-013"]),
        (-0.2, 0.3, 20, ["LAKE-013"]),
        (1.0, 1.0, 20, ["LAKE-013"]),
        (0.0, 0.9, 20, ["LAKE-015"]),
    ],
)
def test_spans(from_s: float, to_s: float | None, num_frames: int, codes: list[str]) -> None:
    episode = Episode(source_episode=0, rows=rows_of(0, 5, 0), length=5)
    span = VideoSpan(path=Path("/source/a.mp4"), from_s=from_s, to_s=to_s)
    video = index([frame / FPS for frame in range(num_frames)])
    assert [item.code for item in check_video(episode, "front", span, video, CARD)] == codes


def test_frames_at_another_rate() -> None:
    episode = Episode(source_episode=0, rows=rows_of(0, 5, 0), length=5)
    span = VideoSpan(path=Path("/source/a.mp4"), from_s=0.0, to_s=None)
    found = check_video(episode, "front", span, index([frame / 15 for frame in range(5)]), CARD)
    assert [(item.code, item.row, item.file) for item in found] == [("LAKE-032", 2, "a.mp4")]


def test_pictures_that_lie_on_their_side() -> None:
    episode = Episode(source_episode=0, rows=rows_of(0, 5, 0), length=5)
    span = VideoSpan(path=Path("/source/a.mp4"), from_s=0.0, to_s=None)
    video = replace(index([frame / FPS for frame in range(5)]), turned="turned by 90° clockwise")
    (found,) = check_video(episode, "front", span, video, CARD)
    assert (found.code, found.camera, found.file) == ("LAKE-251", "front", "a.mp4") and "90°" in found.message


@given(st.floats(1, 200), st.floats(0.2, 5), st.integers(4, 60), st.integers(0, 2**32))
def test_another_rate_is_no_gap(fps: float, factor: float, num_rows: int, seed: int) -> None:
    """Steady steps, as clocks measure them. Near the declared rate it is a slow recorder; a pause is a gap."""
    steps = np.random.default_rng(seed).normal(1, 0.01, num_rows) / (fps * factor)
    rows = rows_of(0, num_rows, 0)
    times = pa.array(np.cumsum(steps) - steps[0], pa.float64())
    rows = rows.set_column(rows.column_names.index("timestamp"), "timestamp", times)
    found = check_rows(Episode(source_episode=0, rows=rows, length=num_rows), replace(CARD, fps=fps))
    off = abs(factor - 1)
    if off > 0.2:
        assert [item.code for item in found] == ["LAKE-250"]
    elif off < 0.1:
        assert "LAKE-250" not in [item.code for item in found]


def test_many_episodes_at_an_irrational_rate_stay_on_their_frames() -> None:
    """500 episodes of 7 frames at 30000/1001 Hz in one file: no span drifts off its frames."""
    fps, length = 30000 / 1001, 7
    card = replace(CARD, fps=fps)
    video = index([frame / fps for frame in range(500 * length)])
    for number in (0, 1, 249, 499):
        episode = Episode(source_episode=number, rows=rows_of(number, length, 0, fps=1), length=length)
        rows = episode.rows
        assert rows is not None
        begin = number * length / fps
        span = VideoSpan(path=Path("/source/a.mp4"), from_s=begin, to_s=begin + length / fps)
        found = check_video(episode, "front", span, video, card)
        assert [item.code for item in found if item.severity == "error"] == []


def test_a_row_after_the_last_frame() -> None:
    rows = changed("timestamp", [0.1, 0.2, 0.3, 0.4, 0.5])
    span = VideoSpan(path=Path("/source/a.mp4"), from_s=0.0, to_s=None)
    found = check_video(
        Episode(source_episode=0, rows=rows, length=5), "front", span, index([0, 0.1, 0.2, 0.3, 0.4]), CARD
    )
    assert [(item.code, item.row, item.severity) for item in found] == [("LAKE-048", 4, "warning")]


def test_frames_that_cannot_be_decoded_belong_to_their_episode() -> None:
    """A broken frame at 2.1 s of a file is row 1 of the episode from 2.0 s, and nobody else's."""
    trial = Trial(broken_s=(2.1, 2.3), told="no")
    for number, from_s, expected in ((0, 1.5, []), (1, 2.0, [("LAKE-153", 1, 1)]), (2, 2.5, [])):
        episode = Episode(source_episode=number, rows=rows_of(number, 5, 0))
        span = VideoSpan(path=Path("/source/a.mp4"), from_s=from_s, to_s=from_s + 0.5)
        found = check_trial(episode, "front", span, trial, "h264", CARD)
        assert [(item.code, item.episode, item.row) for item in found] == expected


def test_an_absent_decoder_is_about_the_camera_not_the_episode() -> None:
    episode = Episode(source_episode=0, rows=rows_of(0, 5, 0))
    span = VideoSpan(path=Path("/source/a.mp4"), from_s=0.0, to_s=0.5)
    assert check_trial(episode, "front", span, None, "av1", CARD) == []
    (found,) = check_trial(episode, "front", span, Trial(absent="decoder av1: Function not implemented"), "av1", CARD)
    assert (found.code, found.severity, found.episode, found.camera) == ("LAKE-152", "warning", None, "front")
    assert "av1: decoder av1: Function not implemented" in found.message
