"""Patterns: use every item once, never overfill, and never need more rows than first fit decreasing."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from data_lake.patterns import Pattern, best_fill, first_fit_decreasing, num_rows, plan

histograms = st.dictionaries(st.integers(1, 60), st.integers(1, 40), min_size=1, max_size=12)


def by_item(lengths: list[int], capacity: int) -> list[list[int]]:
    """First fit decreasing as the textbook has it, item by item: the oracle."""
    rows: list[list[int]] = []
    for length in sorted(lengths, reverse=True):
        row = next((row for row in rows if sum(row) + length <= capacity), None)
        if row is None:
            rows.append(row := [])
        row.append(length)
    return rows


def as_rows(patterns: list[Pattern], lengths: list[int]) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for members, rows in patterns:
        found[tuple(lengths[c] for c, number in members for _ in range(number))] += rows
    return found


@given(histogram=histograms, room=st.integers(0, 100))
@settings(max_examples=300, deadline=None)
def test_every_item_once_and_no_row_too_full(histogram: dict[int, int], room: int) -> None:
    lengths = sorted(histogram, reverse=True)
    counts, capacity = [histogram[length] for length in lengths], max(lengths) + room
    for planner in (best_fill, first_fit_decreasing, plan):
        rows = as_rows(planner(lengths, counts, capacity), lengths)
        assert max(sum(row) for row in rows) <= capacity
        used = Counter(length for row, times in rows.items() for length in row for _ in range(times))
        assert used == histogram


@given(histogram=histograms, room=st.integers(0, 100))
@settings(max_examples=200, deadline=None)
def test_groups_give_the_rows_that_item_by_item_gives(histogram: dict[int, int], room: int) -> None:
    lengths = sorted(histogram, reverse=True)
    counts, capacity = [histogram[length] for length in lengths], max(lengths) + room
    items = [length for length in lengths for _ in range(histogram[length])]
    expected = Counter(tuple(row) for row in by_item(items, capacity))
    grouped = as_rows(first_fit_decreasing(lengths, counts, capacity), lengths)
    assert grouped == expected


@given(histogram=histograms, room=st.integers(0, 100))
@settings(max_examples=200, deadline=None)
def test_never_more_rows_than_first_fit_decreasing(histogram: dict[int, int], room: int) -> None:
    lengths = sorted(histogram, reverse=True)
    counts, capacity = [histogram[length] for length in lengths], max(lengths) + room
    items = [length for length in lengths for _ in range(histogram[length])]
    assert num_rows(plan(lengths, counts, capacity)) <= len(by_item(items, capacity))


def test_companions_fill_a_row_exactly() -> None:
    """6 + 4 and 5 + 5 fill rows of 10; first fit decreasing finds them too."""
    assert as_rows(plan([6, 5, 4], [3, 2, 3], 10), [6, 5, 4]) == {(6, 4): 3, (5, 5): 1}


def test_better_than_first_fit_decreasing_where_that_is_known_to_fail() -> None:
    """Rows of 12: 6 3 3 and 4 4 4 fill two exactly; first fit decreasing opens a third (6 4, 4 4 3, 3)."""
    lengths, counts = [6, 4, 3], [1, 3, 2]
    assert num_rows(first_fit_decreasing(lengths, counts, 12)) == 3
    assert num_rows(plan(lengths, counts, 12)) == 2


def test_a_class_meets_several_others() -> None:
    """The first patterns of an opening class leave half of it for other companions."""
    patterns = plan([7, 3, 2, 1], [100, 60, 60, 60], 10)
    companions = {members for members, _ in patterns if members[0][0] == 0}
    assert len(companions) >= 2


def test_nothing_to_plan() -> None:
    assert plan([], [], 10) == []
