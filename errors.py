"""The two kinds of failure that the loop tells apart: what a person must mend, and what a retry may cure.

Standard library only, so that every folder can raise them.
"""

from functools import partial
from typing import Any


class UserError(Exception):
    """Something a person must mend: one paragraph with a stable code, where it is, and what to do now.

    `code` is like `LAKE-007` and never changes its meaning; `where` names file, episode, camera, row or
    field as far as they are known; `next_step` is a sentence or a command.
    """

    def __init__(self, code: str, message: str, *, where: str = "", done: str = "", next_step: str = "") -> None:
        super().__init__(code, message, where, done, next_step)
        self.code = code
        self.message = message
        self.where = where
        self.done = done
        self.next_step = next_step

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process: an exception is otherwise made again from positional arguments alone."""
        parts = {"where": self.where, "done": self.done, "next_step": self.next_step}
        return partial(type(self), **parts), (self.code, self.message)

    def __str__(self) -> str:
        lines = [f"{self.code}: {self.message}"]
        if self.where:
            lines.append(f"  {self.where}")
        if self.done:
            lines.append(f"  done: {self.done}")
        if self.next_step:
            lines.append(f"  next: {self.next_step}")
        return "\n".join(lines)


class Transient(Exception):
    """Worth another attempt: preemption, a lost worker, throttled storage. Anything else fails once, loudly."""
