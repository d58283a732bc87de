"""Which episodes people mean, by the lake's numbers or the source's, and the labels that a file gives to many."""

import csv
import json
import re
from collections.abc import Iterator
from typing import Any

from data_lake.files import LakePath
from data_lake.version import DatasetVersion
from errors import UserError

ANY_SOURCE = "source"
ASKED = re.compile(r"(?:(.+):)?(\d+)(?:-(\d+))?")

Label = tuple[str, str]
"""Which episodes (as `episodes_asked` understands them), and their instruction."""


def episodes_asked(version: DatasetVersion, asked: str) -> list[int]:
    """Numbers in the lake, each that is asked for being one episode.

    asked: `3` or `1-5,7` are numbers in the lake; `kitchen:30` is episode 30 of the source `kitchen`, and `source:30`
    of whichever source has one. Raises UserError LAKE-181 for what is no number, is not there, or is several.
    """
    return [found for part in asked.split(",") for found in _part(version, part.strip())]


def _part(version: DatasetVersion, part: str) -> Iterator[int]:
    match = ASKED.fullmatch(part)
    if match is None or (match[3] and int(match[3]) < int(match[2])):
        raise _wrong(version, f"not an episode: {part!r}")
    source, first, last = match[1], int(match[2]), int(match[3] or match[2])
    for number in range(first, last + 1):
        found = [row["episode_index"] for row in version.episodes if _is(row, source, number)]
        if not found:
            raise _wrong(version, f"there is no episode {number}" + (f" of source {source!r}" if source else ""))
        if len(found) > 1:
            named = ", ".join(f"{each} ({version.episodes[each]['source']})" for each in found)
            raise _wrong(version, f"{part} may be any of the episodes {named}")
        yield found[0]


def _is(row: dict[str, Any], source: str | None, number: int) -> bool:
    if source is None:
        return row["episode_index"] == number
    return row["source_episode"] == number and source in (ANY_SOURCE, row["source"])


def _wrong(version: DatasetVersion, what: str) -> UserError:
    sources = ", ".join(sorted({row["source"] for row in version.episodes}))
    return UserError(
        "LAKE-181",
        what,
        where=f"{version.name} · episodes 0 to {len(version.episodes) - 1} · sources: {sources}",
        done="nothing was changed",
        next_step="3 or 1-5,7 by the lake's numbers, SOURCE:30 by the source's",
    )


def read_labels(path: LakePath) -> list[Label]:
    """Of a CSV file with the columns `episode` and `instruction`, or of lines of JSON with these keys.

    Raises UserError LAKE-187 naming the line that is neither.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("LAKE-187", f"the labels cannot be read: {error}", where=str(path)) from error
    labels = [_label(path, line, row) for line, row in (_csv(text) if path.suffix == ".csv" else _lines(path, text))]
    if not labels:
        raise UserError("LAKE-187", "the file holds no labels", where=str(path), next_step=FORM)
    return labels


FORM = 'a line is {"episode": 3, "instruction": "…"}, or in a .csv 3,… below the header episode,instruction'


def _csv(text: str) -> Iterator[tuple[int, Any]]:
    reader = csv.DictReader(text.splitlines())
    return ((reader.line_num, row) for row in reader)


def _lines(path: LakePath, text: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as error:
                where = f"{path} · line {number}"
                raise UserError("LAKE-187", f"not JSON: {error}", where=where, next_step=FORM) from error


def _label(path: LakePath, line: int, row: Any) -> Label:
    if not isinstance(row, dict) or not isinstance(row.get("instruction"), str) or row.get("episode") in (None, ""):
        where = f"{path} · line {line}"
        raise UserError("LAKE-187", "not an episode with its instruction", where=where, next_step=FORM)
    return str(row["episode"]), row["instruction"]
