"""Errors: one paragraph with code, place and next step."""

import copy
import pickle
from typing import Any

import pytest

from errors import Transient, UserError


def test_paragraph_has_all_parts() -> None:
    error = UserError("LAKE-007", "no footer", where="episode 3", done="in quarantine", next_step="copy it again")
    assert str(error) == "LAKE-007: no footer\n  episode 3\n  done: in quarantine\n  next: copy it again"


def test_parts_that_are_unknown_leave_no_empty_line() -> None:
    assert str(UserError("NAME-001", "unknown")) == "NAME-001: unknown"
    assert str(UserError("NAME-001", "unknown", next_step="look")) == "NAME-001: unknown\n  next: look"


def test_parts_can_be_read_one_by_one() -> None:
    error = UserError("A-001", "m", where="w", done="d", next_step="n")
    assert (error.code, error.message, error.where, error.done, error.next_step) == ("A-001", "m", "w", "d", "n")


def test_a_retry_never_catches_what_a_person_must_mend() -> None:
    assert not issubclass(UserError, Transient)
    assert not issubclass(Transient, UserError)


@pytest.mark.parametrize("again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize(
    "error", [UserError("A-001", "m", where="w", done="d", next_step="n"), UserError("A-001", "m"), Transient("lost")]
)
def test_an_error_is_the_same_in_another_process(again: Any, error: Exception) -> None:
    """Or a pool of processes would tell that it broke, and not why."""
    made = again(error)
    assert (type(made), str(made), made.args, vars(made)) == (type(error), str(error), error.args, vars(error))
