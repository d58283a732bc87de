"""Reading ahead: in order, as much as waiting asks for, never more than the bytes allow."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial

import pytest

from data_lake.ahead import FEWEST, NOTICED_S, WAITING_THREADS, Ahead, Begin, threads


def test_values_come_in_the_order_of_keys() -> None:
    ahead = Ahead(lambda key: (time.sleep(0.003 * (key % 3)), key)[1], lambda _: 1)
    assert list(ahead.over(range(40))) == list(range(40))


def test_it_grows_while_the_taker_waits() -> None:
    ahead = Ahead(lambda key: (time.sleep(0.004), key)[1], lambda _: 10, max_bytes=60)
    assert list(ahead.over(range(30))) == list(range(30))
    assert ahead.in_flight == 6
    assert ahead.wait_s > 0


def test_it_stays_small_where_nobody_waits() -> None:
    ahead = Ahead(lambda key: key, lambda _: 1)
    for _ in ahead.over(range(10)):
        time.sleep(0.005)
    assert ahead.in_flight <= FEWEST + 1  # the first value has to be waited for


class Late(Future[int]):
    """Has always to be waited for, whatever the machine does meanwhile."""

    def result(self, timeout: float | None = None) -> int:
        time.sleep(2 * NOTICED_S)
        return super().result(timeout)


def test_never_more_in_flight_than_the_bytes_allow() -> None:
    """Values of 10 bytes under a bound of 40: four are begun and not yet taken, and never more."""
    begun, ahead_of_taker = 0, []

    @contextmanager
    def late(make: Callable[[int], int]) -> Iterator[Begin[int]]:
        def begin(key: int) -> Future[int]:
            nonlocal begun
            begun += 1
            made = Late()
            made.set_result(make(key))
            return made

        yield begin

    values = Ahead(lambda key: key, lambda _: 10, max_bytes=40, makers=late).over(range(60))
    for taken, _ in enumerate(values, 1):
        ahead_of_taker.append(begun - taken)
    assert max(ahead_of_taker) == 4 and ahead_of_taker[:3] == [FEWEST + 1, 4, 4]


def test_what_is_far_is_soon_waited_for_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """2, 4 and 8 in flight after two waits, whatever the cores; the bytes still bound it."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    lock, now, most = threading.Lock(), 0, 0

    def make(key: int) -> int:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.05)
        with lock:
            now -= 1
        return key

    ahead = Ahead(make, lambda _: 10, 1000, partial(threads, least=WAITING_THREADS), is_far=True)
    assert list(ahead.over(range(14))) == list(range(14))
    assert ahead.in_flight >= 8 and 8 <= most <= WAITING_THREADS
    bound = Ahead(make, lambda _: 10, 60, partial(threads, least=WAITING_THREADS), is_far=True)
    assert list(bound.over(range(20))) == list(range(20)) and bound.in_flight == 6


def test_larger_values_make_it_fewer() -> None:
    ahead = Ahead(lambda key: (time.sleep(0.003), key)[1], lambda key: 10 if key < 20 else 40, max_bytes=80)
    list(ahead.over(range(20)))
    assert ahead.in_flight == 8
    list(ahead.over(range(20, 40)))
    assert ahead.in_flight == 2


def test_an_error_is_raised_where_its_value_is_due_and_no_thread_stays() -> None:
    def make(key: int) -> int:
        if key == 3:
            raise ValueError("three")
        return key

    seen = []
    with pytest.raises(ValueError, match="three"):
        for value in Ahead(make, lambda _: 1).over(range(9)):
            seen.append(value)  # noqa: PERF402 (what came before the error counts)
    assert seen == [0, 1, 2]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("loader")]


def test_another_maker_is_asked_in_order_and_left_when_its_taker_leaves() -> None:
    asked: list[int] = []
    left = False

    @contextmanager
    def at_once(make: Callable[[int], int]) -> Iterator[Begin[int]]:
        nonlocal left

        def begin(key: int) -> Future[int]:
            asked.append(key)
            made: Future[int] = Future()
            made.set_result(make(key))
            return made

        try:
            yield begin
        finally:
            left = True

    values = Ahead(lambda key: key * key, lambda _: 1, makers=at_once).over(range(9))
    assert [next(values) for _ in range(3)] == [0, 1, 4]
    assert asked == list(range(3 + FEWEST)) and not left
    values.close()
    assert left
