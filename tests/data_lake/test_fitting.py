"""Frames of one data set are of one kind; names and cameras may differ."""

from pathlib import Path

import pytest

from data_lake.fitting import same_kind, unusual
from data_lake.sources import open_source
from data_lake.sources.episode import Source
from errors import UserError
from tests.data_lake.recordings import write_v2

VIDEO = {"dtype": "video", "shape": [8, 8, 3], "names": None}
STATE = {"dtype": "float32", "shape": [3], "names": None}


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return open_source(write_v2(tmp_path / "v2", (5,)))


@pytest.mark.parametrize(
    ("held", "new"),
    [
        ({}, {"observation.state": STATE}),
        ({"observation.state": STATE}, {"observation.state": {**STATE, "names": ["x", "y", "z"]}}),
        ({"observation.state": STATE, "top": VIDEO}, {"observation.state": STATE}),
        # D13: what recorders add without meaning
        ({"observation.state": {**STATE, "fps": 10, "info": None}}, {"observation.state": {**STATE, "video_info": {}}}),
    ],
)
def test_the_same_kind(held: dict[str, object], new: dict[str, object], source: Source) -> None:
    same_kind(source, "cart", {"fps": 10, "features": held}, new)


@pytest.mark.parametrize(
    ("fps", "held", "word"),
    [
        (10, {"observation.state": {**STATE, "shape": [4]}}, "observation.state"),
        (10, {"observation.state": {**STATE, "dtype": "int64"}}, "observation.state"),
        (10, {"observation.state": STATE, "next.reward": STATE}, "next.reward"),
        (20, {"observation.state": STATE}, "fps"),
    ],
)
def test_another_kind(fps: int, held: dict[str, object], word: str, source: Source) -> None:
    with pytest.raises(UserError, match=word) as error:
        same_kind(source, "cart", {"fps": fps, "features": held}, {"observation.state": STATE})
    assert error.value.code == "LAKE-006"


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
