"""What is said of a run that waited for its samples."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.waiting import input_bound, waited


def lines(*waits: float | None, step_s: float = 100.0) -> list[dict[str, Any]]:
    """Steps of 8 samples, each as long as step_s; None: of before a restart."""
    speeds = [None if wait is None else 8 / step_s for wait in waits]
    return [
        {"input_wait": wait, "num_samples": 8, "samples_per_s": speed}
        for wait, speed in zip(waits, speeds, strict=True)
    ]


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "card.json").write_text(json.dumps({"inputs": {}}))
    (tmp_path / "packed.json").write_text(json.dumps({"tokens_per_row": 8}))
    return tmp_path, tmp_path


def test_the_first_step_and_resumed_ones_do_not_count() -> None:
    assert waited(lines(0.9, 0.1, None, 0.3)) == pytest.approx((40, 0.2))
    assert waited(lines(0.9)) == waited(lines(None, None)) == waited([]) == (0, 0)


def test_a_long_step_counts_for_more_than_a_short_one() -> None:
    assert waited([*lines(0.0), *lines(0.5, step_s=90), *lines(0.0, step_s=10)]) == pytest.approx((45, 0.45))


def test_nothing_is_said_up_to_five_percent(places: tuple[Path, Path]) -> None:
    assert input_bound(lines(1.0, 0.05, 0.05), *places) == ""


def test_nothing_is_said_of_a_few_seconds(places: tuple[Path, Path]) -> None:
    assert input_bound(lines(0.0, 0.9, 0.9, step_s=2), *places) == ""


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
