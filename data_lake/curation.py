"""Choosing episodes of a lake data set: by SQL over what is known of each, by numbers of the lake or of the source.

A choice copies nothing. Made twice of the same version it gives the same episodes.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from data_lake import lake_meta
from data_lake.meaning import MEANT
from data_lake.version import DatasetVersion
from errors import UserError

Row = dict[str, Any]

OWN_COLUMNS = ("episode_index", "source", "source_episode", "length", "instruction", "tasks", "content_hash")
WHY = re.compile(r"(Daft error: |Due to: )?(REASON:|DaftError::\w+) ?")
NUMBERS = re.compile(r"(source:)?(\d+)(?:-(\d+))?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """Which episodes: all that `where` (SQL) is true of, of those that `episodes` lists, without those of `exclude`.

    episodes, exclude: `1-5,7` are numbers in the lake, `source:30` is what the source numbered so. Empty: no limit.
    """

    where: str = ""
    episodes: str = ""
    exclude: str = ""


def choose(version: DatasetVersion, choice: Choice) -> list[Row]:
    """Rows of the episodes table that `choice` keeps, in the order of the lake.

    An excluded episode is left out with every other copy of the same recording. Raises UserError LAKE-206 for SQL that
    cannot be answered, LAKE-207 for what are no numbers, LAKE-208 for numbers that the version does not have.
    """
    wanted, unwanted = (_named(version, name, text) for name, text in _listed(choice))
    excluded = {row["content_hash"] for row in version.episodes if row["episode_index"] in unwanted}
    chosen = _true_of(version, choice.where) if choice.where else None
    return [
        row
        for row in version.episodes
        if (not choice.episodes or row["episode_index"] in wanted)
        and row["content_hash"] not in excluded
        and (chosen is None or row["episode_index"] in chosen)
    ]


def _listed(choice: Choice) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("episodes", choice.episodes), ("exclude", choice.exclude)


def _named(version: DatasetVersion, name: str, text: str) -> set[int]:
    """Lake numbers of the episodes that `text` lists, each of which must be there."""
    found: set[int] = set()
    for column, first, last in parse_numbers(name, text):
        rows = {row["episode_index"]: row[column] for row in version.episodes if first <= row[column] <= last}
        if absent := sorted(set(range(first, last + 1)) - set(rows.values())):
            what = "source episode" if column == "source_episode" else "episode"
            raise UserError(
                "LAKE-208",
                f"{version.name} has no {what} {absent[0]}",
                where=f"{name}: {text}",
                next_step=f"its episodes are 0 to {len(version.episodes) - 1}; `source:N` asks by the source's numbers",
            )
        found |= set(rows)
    return found


def parse_numbers(name: str, text: str) -> list[tuple[str, int, int]]:
    """`1-5,source:30` as (column of the episodes table, first, last). Raises UserError LAKE-207 naming the part."""
    found = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        match = NUMBERS.fullmatch(part)
        first, last = (int(match[2]), int(match[3] or match[2])) if match else (1, 0)
        if match is None or last < first:
            raise UserError("LAKE-207", f"not episode numbers: {part!r}", where=name, next_step="1-5,7 or source:30")
        found.append(("source_episode" if match[1] else "episode_index", first, last))
    return found


def episode_columns(version: DatasetVersion) -> pa.Table:
    """A row per episode: what the lake knows of it, what its source declared (`fps`, `action_mode`, …), its cameras,
    and each further thing that the source said of it (`seed`, `success`, …) under that name."""
    rows = [
        {
            **{name: row[name] for name in OWN_COLUMNS},
            "cameras": sorted(lake_meta.entry_of(row)["views"]),
            **_plain(json.loads(row["meaning"])),
        }
        for row in version.episodes
    ]
    extras = [json.loads(row["extra"]) for row in version.episodes]
    columns = {name: pa.array([row[name] for row in rows]) for name in rows[0]}
    for name in dict.fromkeys(key for extra in extras for key in extra):
        title = name
        while title in columns:
            title = f"extra_{title}"
        columns[title] = _column([extra.get(name) for extra in extras])
    return pa.table(columns)


def _plain(meaning: Mapping[str, Any]) -> Row:
    return {name: meaning.get(name) for name in MEANT}


def _column(values: Sequence[Any]) -> pa.Array:
    """Of one type; as text where a source was not consistent, or has what Arrow cannot hold (2^63, half a letter)."""
    try:
        return pa.array(values)
    except (ValueError, TypeError, OverflowError):  # Arrow's own errors are kinds of the first two
        texts = [None if value is None else str(value).encode(errors="replace").decode() for value in values]
        return pa.array(texts, pa.string())


def _true_of(version: DatasetVersion, where: str) -> set[int]:
    """Lake numbers of the episodes that the SQL condition is true of; it may ask the table `frames` in a subquery."""
    import daft

    episodes = episode_columns(version)
    frames = daft.read_lance(str(version.root / "frames.lance"), version=version.manifest.vector["frames"])
    query = "\n".join(("select episode_index from episodes where (", where, ")"))  # a comment ends with its line
    try:
        found = daft.sql(query, register_globals=False, episodes=daft.from_arrow(episodes), frames=frames).to_pydict()
    except Exception as error:  # what Daft raises for invalid SQL can be imported from nowhere
        raise UserError(
            "LAKE-206",
            f"the filter cannot be answered: {_reason(str(error))}",
            where=f"where {where}",
            next_step=f"columns: {', '.join(episodes.column_names)}; of `frames`: {', '.join(frames.column_names)}",
        ) from error
    return set(found["episode_index"])


def _reason(told: str) -> str:
    """The line that says why, of the several that the engine gives: the last that begins with one of its marks."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    marked = [line for line in lines if WHY.match(line)]
    return WHY.sub("", marked[-1] if marked else lines[0])
