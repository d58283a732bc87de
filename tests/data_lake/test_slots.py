"""Cameras into slots: by declaration, the same picture under the policy's name."""

from pathlib import Path

import pytest

from data_lake.slots import in_slots
from data_lake.specs import CameraSlot
from data_lake.view import DatasetView, read_view
from errors import UserError
from tests.data_lake.lake_fixture import Recorded, write_view


@pytest.fixture
def view(tmp_path: Path) -> DatasetView:
    write_view(tmp_path, [Recorded(length=3), Recorded(length=2, views=("top",))], {})
    return read_view(tmp_path)


def names(view: DatasetView) -> list[dict[str, str]]:
    """By slot the video that fills it."""
    return [{span.view: span.video_key.rpartition(".")[2] for span in episode.spans} for episode in view.episodes]


def test_nothing_declared_changes_nothing(view: DatasetView) -> None:
    assert in_slots(view, ()) == view


def test_a_camera_gets_the_name_of_its_slot(view: DatasetView) -> None:
    found = in_slots(view, [CameraSlot(slot="front", camera="top")])
    assert names(found) == [{"front": "top", "corner": "corner"}, {"front": "top"}]


def test_slots_can_be_exchanged(view: DatasetView) -> None:
    pairs = [CameraSlot(slot="top", camera="corner"), CameraSlot(slot="corner", camera="top")]
    assert names(in_slots(view, pairs)) == [{"top": "corner", "corner": "top"}, {"corner": "top"}]


@pytest.mark.parametrize("camera", ["corner", None])
def test_a_camera_called_as_the_slot_of_another_is_left_out(view: DatasetView, camera: str | None) -> None:
    found = names(in_slots(view, [CameraSlot(slot="top", camera=camera)]))
    assert found == [{"top": "corner"} if camera else {"corner": "corner"}, {}]


@pytest.mark.parametrize(
    "cameras",
    [
        [CameraSlot(slot="top", camera="left")],
        [CameraSlot(slot="a", camera="top"), CameraSlot(slot="a", camera="corner")],
    ],
)
def test_what_cannot_be_is_refused(view: DatasetView, cameras: list[CameraSlot]) -> None:
    with pytest.raises(UserError, match="(?s)LAKE-213.*cameras of coded: corner, top"):
        in_slots(view, cameras)
