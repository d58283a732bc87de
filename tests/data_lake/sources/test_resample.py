"""Holding values on a clock of rows, against rational arithmetic and a search through all stamps."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_lake.sources.resample import NANOSECONDS, newest, row_times, runs, shared_span

RATES = st.one_of(
    st.sampled_from([Fraction(30000, 1001), Fraction(10), Fraction(1, 3), Fraction(2997, 100)]),
    st.fractions(min_value=Fraction(1, 100), max_value=1000, max_denominator=100_000),
)
STAMPS = st.lists(st.integers(0, 200), min_size=1, max_size=40).map(sorted)
EPOCH = 1_700_000_000_000_000_000


@given(RATES, st.integers(-(10**18), 2 * 10**18), st.integers(-NANOSECONDS, NANOSECONDS))
def test_rows_are_where_rational_arithmetic_puts_them(rate_hz: Fraction, first_ns: int, span_ns: int) -> None:
    expected, row = [], 0
    while len(expected) < 2000 and (exact := first_ns + row * NANOSECONDS / rate_hz) <= first_ns + span_ns:
        expected.append(exact.numerator // exact.denominator)
        row += 1
    assert row_times(first_ns, first_ns + span_ns, rate_hz).tolist() == expected


@pytest.mark.parametrize("rate_hz", [Fraction(30000, 1001), Fraction(2997, 100), Fraction(4_999_961, 99_991)])
def test_nothing_adds_up_over_a_day(rate_hz: Fraction) -> None:
    """Each row is within a nanosecond of its exact time; adding up rounded steps would be off by whole frames."""
    day_ns = 24 * 3600 * NANOSECONDS
    times_T = row_times(EPOCH, EPOCH + day_ns, rate_hz)
    num_rows = int(day_ns * rate_hz / NANOSECONDS) + 1
    assert len(times_T) == num_rows and times_T.dtype == np.int64
    for row in (1, num_rows // 3, num_rows - 1):
        assert times_T[row] == EPOCH + int(row * NANOSECONDS / rate_hz)
    assert (np.diff(times_T) > 0).all()


@given(STAMPS, st.lists(st.integers(0, 300), max_size=40))
def test_the_newest_that_is_not_of_the_future(stamps: list[int], later: list[int]) -> None:
    times = [stamps[0] + offset for offset in later]
    index_T, age_T = newest(np.array(stamps), np.array(times, np.int64))
    for time, index, age in zip(times, index_T, age_T, strict=True):
        oracle = max(number for number, stamp in enumerate(stamps) if stamp <= time)
        assert (index, age) == (oracle, time - stamps[oracle])
        assert age >= 0 and all(not stamps[index] < stamp <= time for stamp in stamps)


@given(st.lists(STAMPS, min_size=1, max_size=4))
def test_the_span_that_all_streams_share(streams: list[list[int]]) -> None:
    first, last = shared_span([np.array(stamps) for stamps in streams])
    for time in range(201):
        has_all = all(stamps[0] <= time <= stamps[-1] for stamps in streams)
        assert has_all == (first <= time <= last)


@given(st.lists(st.booleans(), max_size=30))
def test_runs_are_unbroken_and_complete(kept: list[bool]) -> None:
    found = runs(np.array(kept, bool))
    assert [row for begin, end in found for row in range(begin, end)] == [
        row for row, is_in in enumerate(kept) if is_in
    ]
    assert all(begin < end for begin, end in found)
    assert all(end < begin for (_, end), (begin, _) in pairwise(found)), "runs that touch are one"
