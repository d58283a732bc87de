"""Whose word counts for what pixels and numbers mean, and what is asked for."""

import math
from pathlib import Path
from typing import Any

import pytest

from data_lake.meaning import MEANT, meaning_of, meant
from data_lake.sources.episode import SourceCard
from data_lake.specs import AS_THE_SOURCE_SAYS, PaddingSpec, ReadSpec
from errors import UserError


def card(**changes: Any) -> SourceCard:
    fields: dict[str, Any] = {
        "root": Path("somewhere"),
        "format": "hdf5",
        "version": "1",
        "fps": 20.0,
        "robot": "",
        "features": {},
        "cameras": ("front",),
        "num_episodes": 1,
        "instruction_source": "task",
    }
    return SourceCard(**fields | changes)


SETTLED = {"colour_order": "rgb", "image_orientation": "upright"}


def test_the_recorder_then_the_recipe_then_the_format() -> None:
    found = meaning_of(card(by_format=SETTLED), AS_THE_SOURCE_SAYS)
    assert (found["colour_order"], found["image_orientation"], found["action_mode"]) == ("rgb", "upright", None)
    found = meaning_of(card(by_format=SETTLED), ReadSpec(colour_order="bgr", action_mode="delta"))
    assert (found["colour_order"], found["action_mode"]) == ("bgr", "delta")
    found = meaning_of(card(by_format=SETTLED, declared={"image_orientation": "flipped"}), AS_THE_SOURCE_SAYS)
    assert found["image_orientation"] == "flipped"
    assert found.keys() >= set(MEANT)


@pytest.mark.parametrize("missing", sorted(SETTLED))
def test_what_nobody_says_is_asked_for_by_name(missing: str) -> None:
    settled = {name: value for name, value in SETTLED.items() if name != missing}
    with pytest.raises(UserError) as refused:
        meaning_of(card(by_format=settled), AS_THE_SOURCE_SAYS)
    assert refused.value.code == "LAKE-035" and f"ingest.read.{missing}" in refused.value.next_step
    assert meaning_of(card(by_format=settled, cameras=()), AS_THE_SOURCE_SAYS)[missing] is None


def test_a_contradiction_is_refused() -> None:
    with pytest.raises(UserError, match="'rgb', the recipe 'bgr'") as refused:
        meaning_of(card(declared=SETTLED), ReadSpec(colour_order="bgr"))
    assert refused.value.code == "LAKE-036"
    assert meaning_of(card(declared=SETTLED), ReadSpec(colour_order="rgb"))["colour_order"] == "rgb"


def test_what_nobody_declares_is_no_part_of_identity() -> None:
    """Fields that were added later leave the identity of what never used them as it was."""
    silent = meaning_of(card(by_format=SETTLED), AS_THE_SOURCE_SAYS)
    assert meant(silent).keys() == set(MEANT)
    padding = (PaddingSpec(column="state", dims=(3,)),)
    said = meaning_of(card(by_format=SETTLED), ReadSpec(padding=padding, clock="header"))
    assert meant(said).keys() - set(MEANT) == {"padding", "clock"}


def test_the_rate_is_told_as_a_rational() -> None:
    assert meaning_of(card(by_format=SETTLED, fps=30000 / 1001), AS_THE_SOURCE_SAYS)["rate"] == "30000/1001"
    assert meaning_of(card(by_format=SETTLED), AS_THE_SOURCE_SAYS)["rate"] == "20"
    assert meaning_of(card(by_format=SETTLED, fps=math.nan), AS_THE_SOURCE_SAYS)["rate"] is None, "no episode, no rate"
