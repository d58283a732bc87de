"""Units are done once each, in order; the first failure in their order is raised as itself."""

from pathlib import Path

import pytest

from data_lake.runners import Runner, failure_of
from errors import Transient, UserError


def leave(folder: str, unit: str) -> None:
    """A unit of work: one that ends in `bad` fails, one in `again` may be tried again."""
    if unit.endswith("again"):
        raise Transient(f"unit {unit}")
    if unit.endswith("bad"):
        raise UserError("PREP-006", f"unit {unit}", where="here", done="nothing", next_step="mend it")
    (Path(folder) / unit).touch()


WORK = "tests.data_lake.test_runners:leave"


def test_every_unit_is_done(tmp_path: Path) -> None:
    units = [str(number) for number in range(20)]
    assert len(list(Runner().run(WORK, str(tmp_path), units))) == 20
    assert {path.name for path in tmp_path.iterdir()} == set(units)


def test_the_first_failure_in_order_is_raised_whole(tmp_path: Path) -> None:
    done = 0
    with pytest.raises(UserError) as caught:
        for _ in Runner().run(WORK, str(tmp_path), ["0", "1", "2 bad", "3", "4 bad"]):
            done += 1
    error = caught.value
    assert (error.code, error.message, error.where) == ("PREP-006", "unit 2 bad", "here")
    assert (error.done, error.next_step, done) == ("nothing", "mend it", 2)


def test_what_a_retry_may_cure_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(Transient, match="unit 1 again"):
        list(Runner().run(WORK, str(tmp_path), ["0", "1 again", "2 bad"]))


def test_no_unit_needs_no_engine_and_another_name_is_refused() -> None:
    assert list(Runner(name="ray", address="nowhere:1").run(WORK, "", [])) == []
    with pytest.raises(UserError, match="PREP-010"):
        list(Runner(name="spark").run(WORK, "", ["1"]))


def test_other_errors_are_not_swallowed() -> None:
    with pytest.raises(FileNotFoundError):
        failure_of(WORK, "/nowhere/at/all", "1")
