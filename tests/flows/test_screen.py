"""Times and sizes as people read them; errors by their class of use."""

import pytest

from errors import UserError
from flows.screen import FAILED, WRONG_USE, error_object, exit_status, seconds, size


@pytest.mark.parametrize(
    ("value", "text"), [(0.21, "0.2s"), (4.4, "4s"), (59.6, "1m 00s"), (91, "1m 31s"), (7_500, "2h 05m")]
)
def test_seconds(value: float, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (1_500, "1.5 kB"), (139_804, "140 kB"), (2.9e9, "2.9 GB"), (3e12, "3.0 TB")],
)
def test_size(value: float, text: str) -> None:
    assert size(value) == text


@pytest.mark.parametrize(("code", "status"), [("RECIPE-003", WRONG_USE), ("CLI-001", WRONG_USE), ("LAKE-001", FAILED)])
def test_status_follows_the_code(code: str, status: int) -> None:
    assert exit_status(UserError(code, "x")) == status


def test_error_object_has_four_parts() -> None:
    error = UserError("LAKE-007", "torn", where="a.parquet", done="quarantine", next_step="copy")
    assert error_object(error) == {
        "error": {"code": "LAKE-007", "message": "torn", "where": "a.parquet", "next": "copy"}
    }
