"""The made data set of `bench lake-scale`, small: every measurement runs, and they agree on what is there."""

from pathlib import Path

from benchmarks.lake_rows import MEASURED


def test_every_measurement_sees_the_same_rows(tmp_path: Path) -> None:
    work = {name: measurement(tmp_path, 20) for name, measurement in MEASURED.items()}
    assert work["build"] == work["list"] == work["show"] == work["open_version"] == work["open_view"] == work["head"]
    assert work["build"] > 20 * 800
    assert work["sample"] and work["append"]
