"""Values made ahead of who takes them, in order: as many as waiting asks for and a byte bound allows."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")

FEWEST = 2  # one that is taken while the next is made
NOTICED_S = 1e-3  # a wait shorter than this asks for nothing
IN_FLIGHT_BYTES = 512 * 2**20
WAITING_THREADS = 16  # at least, where threads wait for a store most of the time and need no core meanwhile
THREADS = "loader"  # what names of the threads here begin with

Begin = Callable[[int], Future[T]]
"""Has the value of a key made; called in one thread, in the order of keys."""

Makers = Callable[[Callable[[int], T]], AbstractContextManager[Begin[T]]]
"""Who makes values by the function given, from entering until leaving, which ends what is under way."""


@contextmanager
def threads(make: Callable[[int], T], least: int = FEWEST) -> Iterator[Begin[T]]:
    """Makers in this process: a thread per core, `least` at least. Values under way are finished, the rest is not
    begun."""
    pool = ThreadPoolExecutor(max(least, os.cpu_count() or 1), thread_name_prefix=THREADS)
    try:
        yield partial(pool.submit, make)
    finally:
        pool.shutdown(cancel_futures=True)


class Ahead(Generic[T]):
    """Has `makers` make `make(key)` for keys to come. Starts with FEWEST in flight and adds one whenever its taker had
    to wait, while all together stay within `max_bytes` (FEWEST always may). is_far: what is read answers late; each
    wait makes them twice as many.

    wait_s: seconds that takers waited so far. in_flight: how many are made ahead now.
    """

    def __init__(
        self,
        make: Callable[[int], T],
        num_bytes: Callable[[T], int],
        max_bytes: int = IN_FLIGHT_BYTES,
        makers: Makers[T] = threads,
        *,
        is_far: bool = False,
    ) -> None:
        self.make, self.num_bytes = make, num_bytes
        self.max_bytes = max_bytes
        self.makers = makers
        self.is_far = is_far
        self.in_flight = FEWEST
        self.wait_s = 0.0
        self._largest = 0

    def over(self, keys: Iterable[int]) -> Iterator[T]:
        """One value per key, in order. An error of making one is raised here, where its value is due."""
        left, ahead = iter(keys), deque[Future[T]]()
        with self.makers(self.make) as begin:
            while True:
                self._submit(begin, ahead, left)
                if not ahead:
                    return
                value = self._take(ahead.popleft())
                self._submit(begin, ahead, left)
                yield value

    def _submit(self, begin: Begin[T], ahead: deque[Future[T]], left: Iterator[int]) -> None:
        room = max(0, self.in_flight - len(ahead))  # less than none after values have grown
        ahead.extend(begin(key) for key in islice(left, room))

    def _take(self, due: Future[T]) -> T:
        started = time.perf_counter()
        value = due.result()
        waited = time.perf_counter() - started
        self.wait_s += waited
        self._largest = max(self._largest, self.num_bytes(value))
        if waited > NOTICED_S:
            self.in_flight += self.in_flight if self.is_far else 1
        self.in_flight = min(self.in_flight, max(FEWEST, self.max_bytes // max(1, self._largest)))
        return value
