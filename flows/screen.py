"""What a command shows: people read lines on standard output, machines one JSON object on its last line."""

import json
import math
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from data_lake.words import printable
from errors import UserError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

DONE, FAILED, WRONG_USE, REJECTED = 0, 1, 2, 3
"""Exit statuses."""

WIDTH_OF_FILES = 160
"""Columns where no terminal tells: lines stay whole for grep."""

WRONG_USE_CODES = ("CLI-", "NAME-", "PROFILE-", "RECIPE-")


@dataclass(frozen=True, kw_only=True, slots=True)
class Screen:
    """as_json: an object on the last line of standard output, all else on standard error. debug: tracebacks."""

    as_json: bool = False
    quiet: bool = False
    debug: bool = False

    @property
    def console(self) -> "Console":
        """Where people read; rich leaves colours out by NO_COLOR and when nobody looks."""
        from rich.console import Console

        stream = sys.stderr if self.as_json else sys.stdout
        width = None if stream.isatty() else WIDTH_OF_FILES
        return Console(file=stream, highlight=False, soft_wrap=True, quiet=self.quiet, width=width)

    @property
    def is_live(self) -> bool:
        """Whether a person watches a terminal that can be redrawn."""
        return not self.quiet and self.console.is_terminal

    def line(self, text: str = "") -> None:
        """A line for people; square brackets are text, not markup, and what is in it rules no terminal."""
        self.console.print(printable(text), markup=False)

    def aside(self, text: str) -> None:
        """A line for people that is no part of the answer, on standard error."""
        from rich.console import Console

        Console(stderr=True, highlight=False, soft_wrap=True, quiet=self.quiet).print(printable(text), markup=False)

    def show(self, renderable: Any) -> None:
        """Styled text for people, made of `cell`s."""
        self.console.print(renderable)

    def table(
        self,
        titles: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        right: Collection[str] = (),
        whole: Collection[str] = (),
    ) -> None:
        """A table for people. right: titles of numbers; whole: of what is not broken into lines."""
        from rich.table import Table

        drawn = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
        for title in titles:
            justify = "right" if title in right else "left"
            drawn.add_column(title, justify=justify, no_wrap=title in whole, overflow="fold")
        for row in rows:
            drawn.add_row(*map(cell, row))
        self.show(drawn)

    def answer(self, value: Any) -> None:
        """The object for machines, in one line; what is no number is null, as JSON has none such."""
        if self.as_json:
            sys.stdout.write(json.dumps(_finite(value), allow_nan=False) + "\n")
            sys.stdout.flush()

    def error(self, error: UserError) -> int:
        """Tell of an error in one paragraph; returns the exit status."""
        return self.failed(error, {})

    def failed(self, error: UserError, answer: dict[str, Any]) -> int:
        """The same, beside what was done all the same."""
        from rich.console import Console

        Console(stderr=True, highlight=False, soft_wrap=True).print(f"error {_told(error)}", markup=False)
        self.answer(answer | error_object(error))
        return exit_status(error)


def cell(text: str, style: str = "") -> "Text":
    """Of a table: no markup, and nothing that rules a terminal."""
    from rich.text import Text

    return Text(printable(text), style=style)


def _told(error: UserError) -> UserError:
    """`error` as it can be printed. Lines that a message brings are set further in than the error's own."""
    parts = (error.message, error.where, error.done, error.next_step)
    message, where, done, next_step = (printable(part, keep="\n").replace("\n", "\n      ") for part in parts)
    return UserError(error.code, message, where=where, done=done, next_step=next_step)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def error_object(error: UserError) -> dict[str, Any]:
    """`{"error": {"code", "message", "where", "next"}}`."""
    told = {"code": error.code, "message": error.message, "where": error.where, "next": error.next_step}
    return {"error": told}


def exit_status(error: UserError) -> int:
    return WRONG_USE if error.code.startswith(WRONG_USE_CODES) and error.code != "CLI-999" else FAILED


def seconds(value: float) -> str:
    """`0.2s`, `4s`, `1m 31s`, `2h 05m`."""
    if value < 0.95:
        return f"{value:.1f}s"
    whole = round(value)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole // 3600}h {whole % 3600 // 60:02d}m"


def size(num_bytes: float) -> str:
    """`139 kB`, `2.9 GB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:.0f} {unit}" if num_bytes >= 10 or unit == "B" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:.1f} TB"
