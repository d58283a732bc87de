"""Values made ahead of who takes them, in order, by threads: as many as waiting asks for and a byte bound allows."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")

FEWEST = 2  # one that is taken while the next is made
NOTICED_S = 1e-3  # a wait shorter than this asks for nothing
IN_FLIGHT_BYTES = 512 * 2**20
WAITING_THREADS = 16  # at most, where threads wait for a store most of the time and need no core meanwhile


class Ahead(Generic[T]):
    """Makes `make(key)` for keys to come. Starts with FEWEST in flight and adds one whenever its taker had to wait,
    while all together stay within `max_bytes` (FEWEST always may). is_far: what it reads answers late; more threads
    than cores make values, and each wait makes them twice as many.

    wait_s: seconds that takers waited so far. in_flight: how many are made ahead now.
    """

    def __init__(
        self,
        make: Callable[[int], T],
        num_bytes: Callable[[T], int],
        max_bytes: int = IN_FLIGHT_BYTES,
        *,
        is_far: bool = False,
    ) -> None:
        self.make, self.num_bytes = make, num_bytes
        self.max_bytes = max_bytes
        self.is_far = is_far
        self.threads = max(FEWEST, os.cpu_count() or 1, WAITING_THREADS if is_far else 0)
        self.in_flight = FEWEST
        self.wait_s = 0.0
        self._largest = 0

    def over(self, keys: Iterable[int]) -> Iterator[T]:
        """One value per key, in order. An error of a thread is raised here, where its value is due."""
        left = iter(keys)
        pool = ThreadPoolExecutor(self.threads, thread_name_prefix="loader")
        ahead: deque[Future[T]] = deque()
        try:
            while True:
                self._submit(pool, ahead, left)
                if not ahead:
                    return
                value = self._take(ahead.popleft())
                self._submit(pool, ahead, left)
                yield value
        finally:
            pool.shutdown(cancel_futures=True)

    def _submit(self, pool: ThreadPoolExecutor, ahead: deque[Future[T]], left: Iterator[int]) -> None:
        room = max(0, self.in_flight - len(ahead))  # less than none after values have grown
        ahead.extend(pool.submit(self.make, key) for key in islice(left, room))

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
