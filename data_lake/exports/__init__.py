"""Data sets of the lake as folders for others: LeRobot v3.0 and v2.1, whole or not there at all."""

import shlex
from pathlib import Path

from data_lake.exports.meta import ensure_sayable, unlike_lerobot
from data_lake.exports.stats import statistics_of
from data_lake.files import appearing
from data_lake.findings import Finding
from data_lake.sources.lerobot import LeRobotFolder
from data_lake.version import DatasetVersion
from errors import UserError
from lookup import lookup

FORMS = {"v3.0": "data_lake.exports.v30:write_v30", "v2.1": "data_lake.exports.v21:write_v21"}

UNUSED = "LAKE-145"
"""A task that no episode says any more keeps its number: rows of other episodes need theirs."""


def publish_folder(version: DatasetVersion, target: Path, form: str) -> list[Finding]:
    """Write `target` in a form of FORMS; what its readers should know is given back.

    Raises UserError NAME-001 for an unknown form, LAKE-133 when something is there, LAKE-130, LAKE-006, LAKE-076 and
    LAKE-132 as `publish_lance`.
    """
    write = lookup(FORMS, form, "form of a folder")
    if target.exists():
        raise _taken(target)
    ensure_sayable(version)
    version.ensure_intact()
    findings = unlike_lerobot(version)
    try:
        with appearing(target) as folder:
            findings += write(version, statistics_of(version), folder)
            _verify(folder, version, form)
    except FileExistsError as error:
        raise _taken(target) from error
    return findings


def _taken(target: Path) -> UserError:
    return UserError(
        "LAKE-133",
        "the folder to write is there already",
        where=str(target),
        done="nothing was written",
        next_step=f"name another folder, or remove this one: rm -r {shlex.quote(str(target))}",
    )


def _verify(folder: Path, version: DatasetVersion, form: str) -> None:
    """The folder as its own reader sees it: that form, every episode and camera, nothing odd in its metadata."""
    source = LeRobotFolder(folder)
    card = source.card
    lengths = {episode.source_episode: episode.length for episode in source.episodes() if episode.rows is not None}
    expected = {episode["episode_index"]: episode["length"] for episode in version.episodes}
    odd = [item for item in card.findings if item.code != UNUSED]
    if (card.version, lengths, card.cameras, odd) != (form, expected, version.cameras, []):
        what = odd[0].message if odd else f"it reads as {card.version} with {len(lengths)} episodes"
        raise UserError("LAKE-132", f"what was written is not whole: {what}", where=version.name, done="it was removed")
