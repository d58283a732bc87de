"""Crews: each unit once, the dead and the silent replaced, nobody left behind."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errors import Transient, UserError
from tasks.workers.crew import Crew, Unit

FAKE = "tests.tasks.workers.fake_worker"


def crew(tmp_path: Path, *, size: int = 2, patience_s: float = 60.0, **settings: Any) -> Crew:
    settings = {"folder": str(tmp_path), **settings}
    return Crew(FAKE, settings, size=size, logs=tmp_path / "logs", patience_s=patience_s)


def listed(units: list[Unit]) -> Callable[[Unit | None], Unit | None]:
    waiting = list(units)
    return lambda _: waiting.pop(0) if waiting else None


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_every_unit_is_answered_once_and_nobody_stays(tmp_path: Path) -> None:
    units = [{"id": number, "size": 300_000 if number == 3 else 0} for number in range(9)]
    with crew(tmp_path) as workers:
        answers = list(workers.run(listed(units)))
    assert sorted(unit["id"] for unit, _ in answers) == list(range(9))
    assert {len(result["big"]) for _, result in answers} == {0, 300_000}
    assert {result["threads"] for _, result in answers} == {"1"}
    pids = {result["pid"] for _, result in answers}
    assert 1 <= len(pids) <= 2
    assert not any(is_alive(pid) for pid in pids)


def test_a_crew_works_again_after_a_run(tmp_path: Path) -> None:
    with crew(tmp_path, size=1) as workers:
        pids = [result["pid"] for run in (1, 2) for _, result in workers.run(listed([{"id": run}]))]
    assert pids[0] == pids[1]


def test_units_may_be_found_while_working(tmp_path: Path) -> None:
    """`pick` is asked again after each result, with the last unit of that worker."""
    asked: list[Any] = []
    waiting = [{"id": 0}]

    def pick(last: Unit | None) -> Unit | None:
        asked.append(last)
        return waiting.pop() if waiting else None

    with crew(tmp_path, size=1) as workers:
        seen = []
        for unit, _ in workers.run(pick):
            seen.append(unit["id"])
            if unit["id"] < 2:
                waiting.append({"id": unit["id"] + 1})
    assert seen == [0, 1, 2]
    assert asked[0] is None
    assert asked[-1] == {"id": 2}


@pytest.mark.parametrize("act", ["die once", "hang once"])
def test_a_lost_worker_is_replaced_and_its_unit_done_once(tmp_path: Path, act: str) -> None:
    units = [{"id": number, "act": act if number == 1 else ""} for number in range(4)]
    with crew(tmp_path, patience_s=4.0 if act == "hang once" else 60.0) as workers:
        answers = [unit["id"] for unit, _ in workers.run(listed(units))]
    assert sorted(answers) == [0, 1, 2, 3]


def test_a_unit_that_kills_twice_is_transient(tmp_path: Path) -> None:
    with crew(tmp_path, size=1) as workers, pytest.raises(Transient, match="twice"):
        list(workers.run(listed([{"id": 1, "act": "die"}])))


def test_what_a_person_must_mend_comes_through(tmp_path: Path) -> None:
    with crew(tmp_path, size=1) as workers, pytest.raises(UserError) as raised:
        list(workers.run(listed([{"id": 1, "act": "user error"}])))
    assert (raised.value.code, raised.value.where, raised.value.next_step) == ("TEST-001", "here", "mend it")
    with crew(tmp_path, size=1, **{"bad settings": True}) as workers, pytest.raises(UserError, match="TEST-002"):
        list(workers.run(listed([{"id": 2}])))


def test_a_bug_fails_at_once_with_its_traceback(tmp_path: Path) -> None:
    with crew(tmp_path, size=1) as workers, pytest.raises(RuntimeError, match="ValueError: a bug in the worker"):
        list(workers.run(listed([{"id": 1, "act": "bug"}])))


def test_leaving_early_ends_the_workers(tmp_path: Path) -> None:
    with crew(tmp_path) as workers:
        pid = next(workers.run(listed([{"id": number} for number in range(5)])))[1]["pid"]
        assert is_alive(pid)
    assert not is_alive(pid)
