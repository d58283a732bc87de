"""Requests that would train on something else than they say are refused, each under a code of its own."""

from pathlib import Path
from typing import Any

import pytest

from data_lake.request import check_request
from data_lake.view import read_view
from errors import UserError
from tests.data_lake.lake_fixture import RECORDED, request_for, write_view


@pytest.mark.parametrize(
    ("code", "request_changes", "meaning"),
    [
        ("PREP-001", {"sample_stride": 6}, {"render_every": 4}),
        ("PREP-003", {"inputs": {"views": ["top", "wrist"]}}, {}),
        ("PREP-003", {"inputs": {"views": []}}, {}),
        ("PREP-003", {"inputs": {"views": ["top", "top"]}}, {}),
        ("PREP-004", {"heldout_episodes": (99,)}, {}),
        ("PREP-004", {"heldout_episodes": tuple(range(10, 17))}, {}),
        ("PREP-005", {"layout": {"delta_mask": [True, False, False, False]}}, {"action_mode": "delta"}),
    ],
)
def test_refused(tmp_path: Path, code: str, request_changes: dict[str, Any], meaning: dict[str, Any]) -> None:
    write_view(tmp_path, RECORDED, {}, **meaning)
    with pytest.raises(UserError) as caught:
        check_request(read_view(tmp_path), request_for(**request_changes))
    assert caught.value.code == code
    assert caught.value.next_step


@pytest.mark.parametrize(
    ("request_changes", "meaning"),
    [
        ({"sample_stride": 8}, {"render_every": 4}),
        ({"sample_stride": 3}, {"render_every": 1}),
        ({"heldout_episodes": (10, 16)}, {}),
        ({"layout": {"delta_mask": [True] * 4}}, {"action_mode": "absolute"}),
        ({}, {"action_mode": "delta"}),
    ],
)
def test_accepted(tmp_path: Path, request_changes: dict[str, Any], meaning: dict[str, Any]) -> None:
    write_view(tmp_path, RECORDED, {}, **meaning)
    check_request(read_view(tmp_path), request_for(**request_changes))
