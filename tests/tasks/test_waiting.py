"""What is said of a run that waited for its samples."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.waiting import input_bound, input_wait


def lines(*waits: float | None) -> list[dict[str, Any]]:
    return [{"input_wait": wait} for wait in waits]


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "card.json").write_text(json.dumps({"inputs": {}}))
    (tmp_path / "packed.json").write_text(json.dumps({"tokens_per_row": 8}))
    return tmp_path, tmp_path


def test_the_first_step_and_resumed_ones_do_not_count() -> None:
    assert input_wait(lines(0.9, 0.1, None, 0.3)) == pytest.approx(0.2)
    assert input_wait(lines(0.9)) == input_wait(lines(None, None)) == input_wait([]) == 0


def test_nothing_is_said_up_to_five_percent(places: tuple[Path, Path]) -> None:
    assert input_bound(lines(1.0, 0.05, 0.05), *places) == ""


def test_the_decoded_tier_needs_cores(places: tuple[Path, Path]) -> None:
    told = input_bound(lines(0.0, 0.12, 0.12), *places)
    assert told == "input-bound: 12 % of the time waits for samples; give the job more CPU cores"


def test_the_video_tier_has_cheaper_ways(places: tuple[Path, Path]) -> None:
    (places[0] / "card.json").write_text(json.dumps({"video": {}}))
    told = input_bound(lines(0.0, 0.5), *places)
    assert "preprocess.images to decoded" in told and "pack.shuffle to spans" in told
    (places[1] / "packed.json").write_text(json.dumps({"shuffle": {"length": 8, "window": 64}}))
    told = input_bound(lines(0.0, 0.5), *places)
    assert "preprocess.images to decoded" in told and "pack.shuffle" not in told
