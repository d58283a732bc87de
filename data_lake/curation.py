"""Choosing episodes of a lake data set: by SQL over what is known of each, by numbers of the lake or of the source.

A choice copies nothing. Made twice of the same version it gives the same episodes.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from data_lake import lake_meta
from data_lake.asked import episodes_asked
from data_lake.edits.contents import Contents
from data_lake.meaning import MEANT
from data_lake.runners import choose_native
from data_lake.version import DatasetVersion
from errors import UserError

Row = dict[str, Any]

OWN_COLUMNS = ("episode_index", "source", "source_episode", "length", "instruction", "tasks", "content_hash")
WHY = re.compile(r"(Daft error: |Due to: )?(REASON:|DaftError::\w+) ?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """Which episodes: all that `where` (SQL) is true of, of those that `episodes` lists, without those of `exclude`.

    episodes, exclude: as `episodes_asked` understands them. Empty: no limit.
    """

    where: str = ""
    episodes: str = ""
    exclude: str = ""


def choose(version: DatasetVersion, choice: Choice) -> list[Row]:
    """Rows of the episodes table that `choice` keeps, in the order of the lake.

    An excluded episode is left out with every other copy of the same recording, whatever is said of it. Raises
    UserError LAKE-206 for SQL that cannot be answered, LAKE-207 and LAKE-208 as `episodes_asked`.
    """
    wanted, unwanted = (
        set(episodes_asked(version, text, where=f"{name}: {text}")) if text else set[int]()
        for name, text in (("episodes", choice.episodes), ("exclude", choice.exclude))
    )
    left_out = _copies(version, unwanted)
    chosen = _true_of(version, choice.where) if choice.where else None
    return [
        row
        for row in version.episodes
        if (not choice.episodes or row["episode_index"] in wanted)
        and row["episode_index"] not in left_out
        and (chosen is None or row["episode_index"] in chosen)
    ]


def _copies(version: DatasetVersion, unwanted: set[int]) -> set[int]:
    """`unwanted` with every other episode that is the same recording; copies are as long as each other."""
    rows = [version.episodes[number] for number in unwanted]
    contents, lengths = Contents(version), {row["length"] for row in rows}
    recordings = {contents.recording(row) for row in rows}
    alike = [row for row in version.episodes if row["length"] in lengths]
    return {row["episode_index"] for row in alike if contents.recording(row) in recordings}


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
    titles = lake_meta.kept_apart((name for extra in extras for name in extra), columns)
    for name, title in titles.items():
        columns[title] = lake_meta.said_column([extra.get(name) for extra in extras])
    return pa.table(columns)


def _plain(meaning: Mapping[str, Any]) -> Row:
    return {name: meaning.get(name) for name in MEANT}


def _true_of(version: DatasetVersion, where: str) -> set[int]:
    """Lake numbers of the episodes that the SQL condition is true of; it may ask the table `frames` in a subquery."""
    import daft

    choose_native()
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
