"""Frames of one data set are of one kind; names and cameras may differ."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data_lake.doctor import doctor
from data_lake.fitting import STRANGERS, Stranger, same_kind, unusual
from data_lake.sources import open_source
from data_lake.sources.episode import Source
from errors import UserError
from tests.data_lake.recordings import CAMERA, change_info, change_rows, colour, write_v2, write_video
from tests.data_lake.seen import LENGTHS, ingest

VIDEO = {"dtype": "video", "shape": [8, 8, 3], "names": None}
STATE = {"dtype": "float32", "shape": [3], "names": None}

NAMED = {**STATE, "names": ["x", "y", "z"]}


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return open_source(write_v2(tmp_path / "v2", (5,)))


@pytest.mark.parametrize(
    ("held", "new"),
    [
        ({}, {"observation.state": STATE}),
        ({"observation.state": STATE}, {"observation.state": {**STATE, "names": ["x", "y", "z"]}}),
        ({"observation.state": STATE, "top": VIDEO}, {"observation.state": STATE}),
        ({"observation.state": NAMED}, {"observation.state": {**STATE, "names": {"axes": ["x", "y", "z"]}}}),
        ({"observation.state": NAMED}, {"observation.state": {**STATE, "names": ["a", "b", "c"]}}),
        ({"observation.state": NAMED}, {"observation.state": {**STATE, "names": ["x", "x", "x"]}}),
        # D13: what recorders add without meaning
        ({"observation.state": {**STATE, "fps": 10, "info": None}}, {"observation.state": {**STATE, "video_info": {}}}),
    ],
)
def test_the_same_kind(held: dict[str, object], new: dict[str, object], source: Source) -> None:
    """None of these is refused: `same_kind` would raise."""
    same_kind(source, "cart", {"fps": 10, "features": held}, new)


@pytest.mark.parametrize(
    ("fps", "held", "word"),
    [
        (10, {"observation.state": {**STATE, "shape": [4]}}, "observation.state"),
        (10, {"observation.state": {**STATE, "dtype": "int64"}}, "observation.state"),
        (10, {"observation.state": STATE, "next.reward": STATE}, "next.reward"),
        (20, {"observation.state": STATE}, "fps"),
        (10, {"observation.state": STATE, "top": {**VIDEO, "shape": [4, 6, 3]}}, r"top \(8 x 8, 6 x 4 before\)"),
    ],
)
def test_another_kind(fps: int, held: dict[str, object], word: str, source: Source) -> None:
    with pytest.raises(UserError, match=word) as error:
        same_kind(source, "cart", {"fps": fps, "features": held}, {"observation.state": STATE, "top": VIDEO})
    assert error.value.code == "LAKE-006"


@pytest.mark.parametrize("names", [["z", "y", "x"], ["y", "z", "w"], {"axes": ["x", "z", "y"]}])
def test_names_in_another_place(names: object, source: Source) -> None:
    """The numbers of one joint would stand under the name of another."""
    with pytest.raises(UserError, match="x, y, z before") as error:
        same_kind(
            source,
            "cart",
            {"fps": 10, "features": {"observation.state": NAMED}},
            {"observation.state": {**STATE, "names": names}},
        )
    assert error.value.code == "LAKE-006"


def wide(source: Path, episode: int, columns: dict[str, list[Any]]) -> None:
    change_rows(source / f"data/chunk-000/episode_{episode:06d}.parquet", **columns)


def larger(source: Path, episode: int) -> None:
    frames = [colour(episode, frame) for frame in range(LENGTHS[episode])]
    write_video(source / f"videos/chunk-000/{CAMERA}/episode_{episode:06d}.mp4", frames, size=64)


ODD: dict[str, tuple[Callable[[Path, int], None], str]] = {
    "action": (lambda s, n: wide(s, n, {"action": [[0.0] * 5] * LENGTHS[n]}), "LAKE-019"),
    "observation.state": (lambda s, n: wide(s, n, {"observation__state": [[0.0] * 5] * LENGTHS[n]}), "LAKE-019"),
    "dtype": (lambda s, n: wide(s, n, {"action": [[1, 2]] * LENGTHS[n]}), "LAKE-019"),
    "more": (lambda s, n: wide(s, n, {"next__reward": [0.5] * LENGTHS[n]}), "LAKE-019"),
    "size": (larger, "LAKE-233"),
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_episode_stays_out_and_the_others_come_in(odd: str, tmp_path: Path) -> None:
    """Where info.json declares nothing, the first sound episode says what all are like; doctor agrees."""
    spoil, code = ODD[odd]
    source = write_v2(tmp_path / "v2", LENGTHS)
    change_info(source, features={})
    spoil(source, 1)
    done = ingest(source, tmp_path / "cart")
    assert [each["source_episode"] for each in done.view["episodes"]] == [0, 2]
    (found,) = [item for item in done.findings if item.code == code]
    assert found.episode == 1 and "before" in found.message
    assert code != "LAKE-233" or ("64 x 64, 32 x 32" in found.message and found.camera == CAMERA)
    examined = doctor(str(source))
    assert examined["episodes"] == {"in": 3, "ok": 2, "quarantined": 1}
    assert found.as_json() in examined["findings"]
    assert ingest(source, tmp_path / "cart").num_new == 0, "and again"


def test_a_declared_number_that_one_episode_lacks(tmp_path: Path) -> None:
    source = write_v2(tmp_path / "v2", LENGTHS)
    for number in (0, 2):
        wide(source, number, {"next__reward": [0.5] * LENGTHS[number]})
    features = json.loads((source / "meta/info.json").read_text())["features"]
    change_info(source, features=features | {"next.reward": {"dtype": "float64", "shape": [1], "names": None}})
    done = ingest(source, tmp_path / "cart")
    assert [each["source_episode"] for each in done.view["episodes"]] == [0, 2]
    assert any(item.code == "LAKE-019" and "next.reward is missing" in item.message for item in done.findings)


def test_an_episode_that_does_not_fit_the_embodiment_comes_first(tmp_path: Path) -> None:
    """What is known before decides, not who comes first."""
    source = write_v2(tmp_path / "v2", LENGTHS)
    change_info(source, features={})
    wide(source, 0, {"action": [[0.0] * 5] * LENGTHS[0]})
    done = ingest(source, tmp_path / "cart", dims=(3, 2))
    assert [each["source_episode"] for each in done.view["episodes"]] == [1, 2]


def test_a_source_of_which_nothing_fits_is_refused_early(tmp_path: Path) -> None:
    source = write_v2(tmp_path / "v2", (2,) * (STRANGERS + 4), cameras=())
    seen: list[int] = []
    with pytest.raises(Stranger, match="2 action dimensions"):
        ingest(source, tmp_path / "cart", dims=(3, 7), on_progress=lambda done, *_: seen.append(done))
    assert len(seen) == STRANGERS - 1


@pytest.mark.parametrize(
    ("usual", "codes"),
    [
        (None, []),
        ((10.0, ("front",)), []),
        ((10.05, ("front",)), []),  # 29.97 and 30 Hz are one rate
        ((80.0, ("front",)), ["LAKE-221"]),
        ((10.0, ("top", "corner")), ["LAKE-222"]),
        ((10.0, ("front", "wrist")), ["LAKE-222"]),
        ((80.0, ("top",)), ["LAKE-221", "LAKE-222"]),
    ],
)
def test_what_is_unusual_for_the_robot_is_said(
    usual: tuple[float, tuple[str, ...]] | None, codes: list[str], source: Source
) -> None:
    found = unusual(source.card, usual)
    assert [each.code for each in found] == codes and {each.severity for each in found} <= {"warning"}
