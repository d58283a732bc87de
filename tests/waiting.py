"""Waiting for what happens in another process or thread."""

import time
from collections.abc import Callable
from typing import Any


def eventually(look: Callable[[], Any], within_s: float = 60.0, every_s: float = 0.1) -> Any:
    """What `look` returns once it is true. Raises `TimeoutError` when it is not in time."""
    deadline = time.monotonic() + within_s
    while not (found := look()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"it did not happen within {within_s:g} s")
        time.sleep(every_s)
    return found
