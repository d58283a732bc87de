"""Every stage fails once: the next run executes what failed and what follows, and touches nothing earlier."""

from pathlib import Path

import pytest

from data_lake.files import sha256
from tasks.build import FAIL_ONCE
from tasks.catalogue import LOOP
from tasks.events import read_events
from tests.flows.comparison import contents, records_by_stage
from tests.flows.loop_runner import run_plainly


def artifacts(lake: Path, stages: list[str]) -> dict[Path, tuple[int, str]]:
    """Time of change and hash of every file that the records of `stages` stand for."""
    files = [
        path
        for stage in stages
        for path in (lake / stage).rglob("*")
        if path.is_file() and path.parent.name != "leases"
    ]
    return {path: (path.stat().st_mtime_ns, sha256(path)) for path in files}


def test_each_stage_fails_once(smoke_lake: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, home = tmp_path / "lake", tmp_path / ".vlaloop"
    order = list(LOOP)
    before: dict[Path, tuple[int, str]] = {}
    for number, stage in enumerate(order):
        monkeypatch.setenv(FAIL_ONCE, stage)
        with pytest.raises(RuntimeError, match=f"{stage} was told to fail once"):
            run_plainly(lake, home, stage)
        assert before.items() <= artifacts(lake, order[:number]).items()
        assert built(home, stage) == order[max(0, number - 1) : number]
        before = artifacts(lake, order[:number])
    run_plainly(lake, home, "register")  # the last run again, as by Retry
    assert built(home, "register") == order[-2:]
    found, undisturbed = records_by_stage(lake), records_by_stage(smoke_lake[0])
    assert {name: contents(record) for name, record in found.items()} == {
        name: contents(record) for name, record in undisturbed.items()
    }


def built(home: Path, run_id: str) -> list[str]:
    return [event["stage"] for event in read_events(home, run_id) if event["event"] == "built"]
