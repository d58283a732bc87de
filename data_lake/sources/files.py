"""Reading a source's files so that what is wrong with one has a code: missing, LFS pointer, no footer, broken."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from errors import UserError

ODD = (AttributeError, KeyError, TypeError, ValueError, OverflowError, pa.ArrowException)
"""What Python and Arrow raise when a value is not of the expected form."""

LFS_MARK = b"version https://git-lfs"
PAGE_MARKS = (b"<!doctype", b"<html", b"<?xml", b"<error")
PARQUET_MARK = b"PAR1"


class Unreadable(Exception):
    """`code` is one of CODES; `detail` says what was seen."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code = code
        self.detail = detail


def natural(path: Path) -> tuple[list[str | int], str]:
    """Sorts demo_2 before demo_10."""
    parts = re.split(r"([0-9]+)", path.name)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)], path.name


def ensure_present(path: Path, missing: str) -> None:
    """Raises Unreadable: `missing` (a code) when there is no such file, LAKE-008 when it is an LFS pointer,
    LAKE-141 when a server's answer in HTML or XML was stored in its place."""
    if not path.is_file():
        raise Unreadable(missing)
    with path.open("rb") as file:
        head = file.read(64)
    if head.startswith(LFS_MARK):
        raise Unreadable("LAKE-008", f"{path.stat().st_size} bytes of pointer text")
    if head.lstrip().lower().startswith(PAGE_MARKS):
        raise Unreadable("LAKE-141", f"it begins with {head.decode(errors='replace').strip()[:24]!r}")


def read_parquet(path: Path, columns: list[str] | None = None) -> pa.Table:
    """The table in `path`. Raises Unreadable with the code of what is wrong."""
    ensure_present(path, "LAKE-009")
    num_bytes = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(max(0, num_bytes - 4))
        tail = file.read(4)
    if head != PARQUET_MARK:
        raise Unreadable("LAKE-022", f"{num_bytes:,} bytes that do not begin like parquet")
    if tail != PARQUET_MARK:
        raise Unreadable("LAKE-007", f"{num_bytes:,} bytes")
    try:
        with pq.ParquetFile(path) as file:
            table = file.read(columns=columns)
    except (pa.ArrowException, OSError) as error:
        raise Unreadable("LAKE-022", str(error).splitlines()[0][:200]) from error
    if twice := [name for name, times in Counter(table.column_names).items() if times > 1]:
        raise Unreadable("LAKE-019", f"there are several columns {twice[0]!r}")
    return table


def read_meta_json(path: Path) -> dict[str, Any]:
    """A JSON object of the metadata. Raises UserError LAKE-004."""
    _ensure_meta(path)
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise unreadable_meta(path, f"not JSON ({error})") from error
    if not isinstance(value, dict):
        raise unreadable_meta(path, "not a JSON object")
    return value


def read_meta_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON-lines file of the metadata. Raises UserError LAKE-004 naming the line."""
    _ensure_meta(path)
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                value = json.loads(line.decode())
            except (ValueError, RecursionError) as error:
                raise unreadable_meta(path, f"not JSON in line {number} ({error})") from error
            if not isinstance(value, dict):
                raise unreadable_meta(path, f"not a JSON object in line {number}")
            yield value


@contextmanager
def well_formed(path: Path) -> Iterator[None]:
    """While values of a metadata file are taken apart: what is not of its form becomes UserError LAKE-004."""
    try:
        yield
    except ODD as error:
        raise unreadable_meta(path, f"not of the form that its format gives it ({describe(error)})") from error


def describe(error: Exception) -> str:
    """The kind and first line of an error that odd values raised."""
    return f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"


def read_meta_parquet(path: Path, columns: list[str] | None = None) -> pa.Table:
    """A table of the metadata. Raises UserError LAKE-004."""
    _ensure_meta(path)
    try:
        return read_parquet(path, columns)
    except Unreadable as error:
        raise unreadable_meta(path, f"broken ({error.code}: {error.detail})") from error


_IN_ITS_PLACE = {"LAKE-008": "a Git LFS pointer", "LAKE-141": "a web page"}


def _ensure_meta(path: Path) -> None:
    try:
        ensure_present(path, "LAKE-004")
    except Unreadable as error:
        raise unreadable_meta(path, _IN_ITS_PLACE.get(error.code, "missing")) from error


def unreadable_meta(path: Path, why: str) -> UserError:
    """LAKE-004 about one file of the metadata."""
    return UserError(
        "LAKE-004",
        f"the source's metadata cannot be read: {path.name} is {why}",
        where=str(path),
        next_step=f"copy {path.name} again (`git lfs pull` where the source is a clone)",
    )
