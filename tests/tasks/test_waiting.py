"""What is said of a run that waited for its samples."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data_lake.refs import PackedRef, PreprocessedRef
from tasks.runtime import Runtime
from tasks.waiting import input_bound, waited

PREPROCESSED = PreprocessedRef(uri="", fingerprint="p", num_samples=1, num_heldout=0, num_views=1)
PACKED = PackedRef(uri="", fingerprint="k", num_samples=1, num_rows=1, tokens_per_row=8, fill_rate=1.0)
Said = Callable[..., str]


def lines(*waits: float | None, step_s: float = 100.0, busy: float = 1.0) -> list[dict[str, Any]]:
    """Steps of 8 samples, each as long as step_s, with this share of the cores in use; None: of before a restart."""
    speeds = [None if wait is None else 8 / step_s for wait in waits]
    cores = busy * (os.cpu_count() or 1)
    return [
        {"input_wait": wait, "num_samples": 8, "samples_per_s": speed, "cores": None if wait is None else cores}
        for wait, speed in zip(waits, speeds, strict=True)
    ]


@pytest.fixture
def said(tmp_path: Path) -> Said:
    (tmp_path / "card.json").write_text(json.dumps({"inputs": {}}))
    (tmp_path / "packed.json").write_text(json.dumps({"tokens_per_row": 8}))

    def ask(measured: list[dict[str, Any]], **profile: Any) -> str:
        runtime = Runtime(lake=tmp_path, home=tmp_path, run_id="r", **profile)
        return input_bound(measured, PREPROCESSED, PACKED, runtime)

    return ask


def test_the_first_step_and_resumed_ones_do_not_count() -> None:
    assert waited(lines(0.9, 0.1, None, 0.3)) == pytest.approx((40, 0.2))
    assert waited(lines(0.9)) == waited(lines(None, None)) == waited([]) == (0, 0)


def test_a_long_step_counts_for_more_than_a_short_one() -> None:
    assert waited([*lines(0.0), *lines(0.5, step_s=90), *lines(0.0, step_s=10)]) == pytest.approx((45, 0.45))


def test_nothing_is_said_up_to_five_percent(said: Said) -> None:
    assert said(lines(1.0, 0.05, 0.05)) == ""


def test_nothing_is_said_of_a_few_seconds(said: Said) -> None:
    assert said(lines(0.0, 0.9, 0.9, step_s=2)) == ""


def test_where_all_cores_are_in_use_others_are_called(said: Said) -> None:
    told = said(lines(0.0, 0.12, None, 0.12))
    assert told.startswith("input-bound: 12 % of the time waits for samples; give the job more CPU cores")
    assert "decode: ray" in told
    assert said(lines(0.0, 0.12, 0.12, busy=0.25), processes=4) == told


def test_more_cores_are_no_cure_for_idle_ones(said: Said) -> None:
    told = said(lines(0.0, 0.12, 0.12, busy=0.25))
    assert "storage (75 % of the CPU cores were idle)" in told and "more" not in told


def test_a_run_on_a_cluster_needs_more_of_it(said: Said) -> None:
    told = said(lines(0.0, 0.12, 0.12, busy=0.1), decode="ray", ray_address="here:1")
    assert told == "input-bound: 12 % of the time waits for samples; give the Ray cluster more CPU cores"


def test_lines_that_tell_nothing_of_cores_are_taken_for_busy(said: Said) -> None:
    measured = lines(0.0, 0.12, 0.12)
    for line in measured:
        del line["cores"]
    assert "decode: ray" in said(measured)


def test_the_video_tier_has_cheaper_ways(said: Said, tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text(json.dumps({"video": {}}))
    told = said(lines(0.0, 0.5))
    assert "preprocess.images to decoded" in told and "or pack.shuffle to spans" in told
    (tmp_path / "packed.json").write_text(json.dumps({"shuffle": {"length": 8, "window": 64}}))
    told = said(lines(0.0, 0.5))
    assert "preprocess.images to decoded" in told and "pack.shuffle" not in told and "decode: ray" in told
