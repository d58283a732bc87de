"""What a report reads: curves over attempts, bins, findings by code, clips within a size."""

import json
from pathlib import Path

import pytest

from tasks import report_facts
from tasks.lineage import Record, lineage
from tests.tasks import fabricated


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Record]]:
    """A lake with one whole run, and its records."""
    root = tmp_path_factory.mktemp("run")
    runtime, ref = fabricated.run(root / "lake", root / "home", "tiny")
    return runtime.lake, lineage(runtime.lake, [ref])


def test_curves_of_a_resumed_run_join(tmp_path: Path) -> None:
    record = {"stage": "train", "fingerprint": "f"}
    for attempt, steps in (("1", range(4)), ("10", range(3, 6))):
        folder = tmp_path / "train" / "f" / "attempts" / attempt
        folder.mkdir(parents=True)
        lines = [{"step": s, "loss": float(attempt), "samples_per_s": None, "input_wait": None} for s in steps]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step": 9, "lo')
    found = report_facts.training(tmp_path, record)
    assert found is not None
    assert found.loss == ((1, 1.0), (2, 1.0), (3, 1.0), (4, 10.0), (5, 10.0), (6, 10.0))


def test_videos_beyond_the_limit_are_named_only(tiny: tuple[Path, dict[str, Record]]) -> None:
    lake, chain = tiny
    first = report_facts.clips(lake, chain["evaluate"])[0]
    clips = report_facts.clips(lake, chain["evaluate"], max_bytes=len(first.uri) * 3 // 4)
    assert [bool(clip.uri) for clip in clips] == [True, False, False]


def test_a_run_without_lines_has_no_curves(tmp_path: Path) -> None:
    assert report_facts.training(tmp_path, {"stage": "train", "fingerprint": "f"}) is None


def test_rows_fall_into_bins_by_their_fill(tmp_path: Path) -> None:
    (tmp_path / "packed.json").write_text(json.dumps({"fill_by_row": [[1.0, 5], [0.905, 2], [0.5, 1]]}))
    counts, first = report_facts.fills(tmp_path, {"ref": {"uri": "."}}, num_bins=5)
    assert first == 0.5
    assert counts == [1, 0, 0, 0, 7]


def test_findings_are_grouped_with_the_severest_first(tiny: tuple[Path, dict[str, Record]]) -> None:
    found = report_facts.findings(tiny[0], tiny[1]["ingest"])
    assert [(each.code, each.severity, each.count) for each in found] == [
        ("LAKE-007", "error", 1),
        ("LAKE-021", "warning", 2),
    ]
    assert found[0].where == "data/chunk-000/episode_000003.parquet · episode 3"


def test_layers_come_worst_first(tiny: tuple[Path, dict[str, Record]]) -> None:
    errors = [error for _, error in report_facts.layer_errors(tiny[0], tiny[1]["export"])]
    assert errors == sorted(errors, reverse=True)
    assert len(errors) == 16


def test_an_export_that_quantised_nothing_has_no_layers(tmp_path: Path) -> None:
    assert report_facts.layer_errors(tmp_path, {"ref": {"uri": "."}}) == []
