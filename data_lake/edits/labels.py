"""Files of labels: which episodes get which instruction, as lines of JSON or as CSV, read strictly."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from data_lake.files import LakePath
from errors import UserError

Label = tuple[str, str]
"""Which episodes (as `episodes_asked` understands them), and their instruction."""

COLUMNS = ["episode", "instruction"]
FORM = 'a line is {"episode": 3, "instruction": "…"}, or in a .csv 3,"…" below the header episode,instruction'


def read_labels(path: LakePath) -> list[Label]:
    """Of a CSV file (RFC 4180) with the columns `episode` and `instruction`, or of lines of JSON with these keys; in
    UTF-8, with a byte order mark or not.

    Raises UserError LAKE-187 naming the line that is neither.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("LAKE-187", f"the labels cannot be read: {error}", where=str(path)) from error
    labels = [
        _label(path, line, row) for line, row in (_csv(path, text) if path.suffix == ".csv" else _lines(path, text))
    ]
    if not labels:
        raise UserError("LAKE-187", "the file holds no labels", where=str(path), next_step=FORM)
    return labels


def _csv(path: LakePath, text: str) -> Iterator[tuple[int, Any]]:
    """Rows of exactly these columns, in either order, by the line that each begins on."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise _wrong(path, line, f"not CSV: {error}") from error
        if row is None:
            return
        if not row:
            continue
        if columns is None:
            columns = [name.strip() for name in row]
            if sorted(columns) != COLUMNS:
                raise _wrong(path, line, f"not the header {','.join(COLUMNS)}")
        elif len(row) != len(COLUMNS):
            raise _wrong(path, line, f"{len(row)} fields where 2 are expected; put quotes around text with a comma")
        else:
            yield line, dict(zip(columns, row, strict=True))


def _lines(path: LakePath, text: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as error:
                raise _wrong(path, number, f"not JSON: {error}") from error


def _label(path: LakePath, line: int, row: Any) -> Label:
    if not isinstance(row, dict) or not isinstance(row.get("instruction"), str):
        raise _wrong(path, line, "not an episode with its instruction")
    episode = row.get("episode")
    if isinstance(episode, bool) or not isinstance(episode, int | str) or episode == "":
        raise _wrong(path, line, "not an episode with its instruction")
    return str(episode), row["instruction"]


def _wrong(path: LakePath, line: int, what: str) -> UserError:
    return UserError("LAKE-187", what, where=f"{path} · line {line}", next_step=FORM)
