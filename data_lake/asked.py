"""Which episodes people mean, by the lake's numbers or the source's: wherever a command names some."""

import re
from collections.abc import Iterator
from itertools import count

from data_lake.version import DatasetVersion
from data_lake.words import counted
from errors import UserError

ANY_SOURCE = "source"
ASKED = re.compile(r"(?:(.+):)?([0-9]{1,12})(?:-([0-9]{1,12}))?")


def episodes_asked(version: DatasetVersion, asked: str, *, where: str = "") -> list[int]:
    """Numbers in the lake, each that is asked for being one episode.

    asked: `3` or `1-5,7` are numbers in the lake; `kitchen:30` is episode 30 of the source `kitchen`, and `source:30`
    of whichever source has one. where: what the numbers were given as. Raises UserError LAKE-207 for what are no
    numbers, LAKE-208 for an episode that is not there or may be any of several.
    """
    return [found for part in asked.split(",") for found in _part(version, part.strip(), where)]


def _part(version: DatasetVersion, part: str, where: str) -> Iterator[int]:
    match = ASKED.fullmatch(part)
    first, last = (int(match[2]), int(match[3] or match[2])) if match else (1, 0)
    if match is None or last < first:
        raise _wrong("LAKE-207", version, f"not an episode: {part!r}", where)
    source, places = match[1], dict[int, list[int]]()
    for row in version.episodes:
        number = row["episode_index"] if source is None else row["source_episode"]
        if first <= number <= last and source in (None, ANY_SOURCE, row["source"]):
            places.setdefault(number, []).append(row["episode_index"])
    if len(places) <= last - first:
        absent = next(number for number in count(first) if number not in places)
        of = f" of source {source!r}" if source else ""
        raise _wrong("LAKE-208", version, f"there is no episode {absent}{of}", where)
    for number in range(first, last + 1):
        if len(places[number]) > 1:
            named = ", ".join(f"{each} ({version.episodes[each]['source']})" for each in places[number])
            raise _wrong("LAKE-208", version, f"{source}:{number} may be any of the episodes {named}", where)
        yield places[number][0]


def _wrong(code: str, version: DatasetVersion, what: str, where: str) -> UserError:
    sources = ", ".join(sorted({row["source"] for row in version.episodes}))
    held = f"{counted(len(version.episodes), 'episode')}, 0 to {len(version.episodes) - 1}"
    return UserError(
        code,
        what,
        where=" · ".join(filter(None, (where, f"{version.name}: {held}", f"sources: {sources}"))),
        done="nothing was changed",
        next_step="3 or 1-5,7 by the lake's numbers, SOURCE:30 by the source's",
    )
