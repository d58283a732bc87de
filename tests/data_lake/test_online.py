"""Packing a stream: each sample once, no row too long, little held back, rows nearly as full as can be."""

from collections.abc import Iterator
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.online import pack_stream
from errors import UserError


@given(lengths=st.lists(st.integers(1, 40), max_size=150), window=st.integers(1, 30))
@settings(max_examples=200, deadline=None)
def test_each_sample_once_and_no_row_too_long(lengths: list[int], window: int) -> None:
    rows = list(pack_stream(enumerate(lengths), capacity=40, window=window))
    assert sorted(id_ for row in rows for id_ in row) == list(range(len(lengths)))
    assert all(sum(lengths[id_] for id_ in row) <= 40 for row in rows)


@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=100), window=st.integers(1, 20))
@settings(max_examples=100, deadline=None)
def test_no_more_than_the_window_is_held_back(lengths: list[int], window: int) -> None:
    """When a row comes out, those that went in but did not come out are fewer than the window."""
    taken, given_out = 0, 0

    def arriving() -> Iterator[tuple[int, int]]:
        nonlocal taken
        for pair in enumerate(lengths):
            taken += 1
            yield pair

    for row in pack_stream(arriving(), capacity=40, window=window):
        given_out += len(row)
        assert taken - given_out < window


def test_the_oldest_is_never_passed_over() -> None:
    """A long one among short ones opens the next row, however many come."""
    stream = ((id_, 39 if id_ == 3 else 2) for id_ in count())
    rows = pack_stream(stream, capacity=40, window=10)
    assert 3 in [id_ for _ in range(2) for id_ in next(rows)]


def test_fills_rows_of_lengths_as_robot_data_have_them() -> None:
    random = np.random.default_rng(0)
    lengths = (random.integers(1, 4, 5000) * 256 + random.integers(20, 201, 5000) + 50).tolist()
    rows = list(pack_stream(enumerate(lengths), capacity=4096, window=256))
    assert sum(lengths) / (4096 * len(rows)) >= 0.97  # 97.9 % where best fit decreasing sees all of them at once


def test_best_fit_by_hand() -> None:
    """10 opens, 6 then fits better than 5 or 4; then 5 with 4, the rest alone."""
    rows = list(pack_stream(enumerate([10, 5, 6, 4]), capacity=16, window=4))
    assert rows == [[0, 2], [1, 3]]


def test_a_sample_longer_than_a_row_is_named() -> None:
    with pytest.raises(UserError, match="LOAD-013.*sample 1 has 17"):
        list(pack_stream([(0, 3), (1, 17)], capacity=16, window=4))
