"""The champion on fresh starts: other seeds each day, and worse only where the intervals do not touch."""

import json
import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from data_lake.refs import TaskResult
from data_lake.sealed import sealed
from flows.nightly_eval import SEEDS_PER_DAY, champion_of, fresh, nightly_eval, verdict, worse_tasks
from flows.recipe import load, resolve


def task(name: str, k: int, low: float, high: float) -> TaskResult:
    return TaskResult(task=name, n=30, k=k, safe=k, low=low, high=high, seconds=2.0)


def test_every_day_has_seeds_of_its_own() -> None:
    spec = resolve(load("tiny")).evaluate
    monday, tuesday = fresh(spec, date(2026, 12, 7)), fresh(spec, date(2026, 12, 8))
    assert tuesday.evaluate.first_seed - monday.evaluate.first_seed == SEEDS_PER_DAY
    assert monday.evaluate.first_seed > spec.evaluate.first_seed + spec.evaluate.episodes_per_task
    assert replace(monday, evaluate=replace(monday.evaluate, first_seed=spec.evaluate.first_seed)) == spec
    assert fresh(spec, date(2026, 12, 7)) == monday  # the same day again builds nothing


def test_offline_suites_stay_as_they_are() -> None:
    spec = resolve(load("gr1")).evaluate
    assert fresh(spec, date(2026, 12, 7)) == spec


def test_worse_is_what_chance_does_not_explain() -> None:
    before = (task("open", 27, 0.74, 0.97), task("close", 15, 0.33, 0.67))
    unlucky = (task("open", 23, 0.59, 0.88), task("close", 11, 0.22, 0.54))
    broken = (task("open", 12, 0.25, 0.58), task("close", 30, 0.89, 1.0), task("other", 0, 0.0, 0.1))
    assert worse_tasks(before, unlucky) == []
    assert worse_tasks(before, broken) == ["open"]
    assert verdict(["open"]) == "worse than when it was registered at open"


@pytest.fixture
def smoke(smoke_lake: tuple[Path, Path], tmp_path: Path) -> dict[str, str]:
    """A copy of the finished smoke loop, registry included."""
    lake, home = smoke_lake
    shutil.copytree(lake, tmp_path / "lake")
    shutil.copytree(home, tmp_path / ".vlaloop")
    return {"lake": str(tmp_path / "lake"), "home": str(tmp_path / ".vlaloop")}


@pytest.mark.slow
def test_the_real_champion_tonight(smoke: dict[str, str]) -> None:
    """As good as it was; and Failed, with the sentence that says where, once it was better when registered."""
    found = champion_of("smoke", Path(smoke["lake"]), Path(smoke["home"]))
    assert found is not None and found.version == 1
    good = nightly_eval("smoke", **smoke, return_state=True)
    assert good.is_completed() and "as good as when it was registered" in good.message
    path = next(Path(smoke["lake"]).glob(f"evaluate/{found.report.fingerprint}/record.json"))
    record = {name: told for name, told in json.loads(path.read_text()).items() if name != "digest"}
    record["ref"]["tasks"][0] |= {"k": 30, "n": 30, "low": 0.99, "high": 1.0}
    path.write_bytes(sealed(record))
    worse = nightly_eval("smoke", **smoke, return_state=True)
    assert worse.is_failed() and record["ref"]["tasks"][0]["task"] in worse.message
    nobody = nightly_eval("nobody", **smoke, return_state=True)
    assert (nobody.is_completed(), nobody.name) == (True, "NoChampion")
