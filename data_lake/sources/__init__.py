"""Sources by name. `auto` asks each format whether it knows the layout; a dotted name brings another one."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from data_lake.sources.episode import TAKEN_BY_ALL, Episode, Source
from data_lake.sources.lerobot_meta import BEFORE
from data_lake.specs import AS_THE_SOURCE_SAYS, ReadSpec
from errors import UserError
from lookup import lookup

SOURCES = {
    "lerobot": "data_lake.sources.lerobot:LeRobotFolder",
    "rlds": "data_lake.sources.rlds:RldsFolder",
    "hdf5": "data_lake.sources.hdf5:Hdf5Demonstrations",
    "lerobot-lance": "data_lake.sources.lerobot_lance:LeRobotLance",
    "rosbag2": "data_lake.sources.bags:RosBags",
}

SHOWN_SETS = 8


def open_source(path: Path, read: ReadSpec = AS_THE_SOURCE_SAYS, *, source_format: str = "auto") -> Source:
    """The source at `path`. Raises UserError LAKE-002 when no format knows it, NAME-001 for an unknown format."""
    if not path.exists():
        raise UserError(
            "LAKE-002",
            "the source does not exist",
            where=str(path),
            next_step="check the path (in a recipe: ingest.source)",
        )
    if not (path / "meta").exists() and any(path.glob(f"{BEFORE}*")):
        raise UserError(
            "LAKE-002",
            "a LeRobot folder whose repair was interrupted: its meta/ is set aside",
            where=str(path),
            next_step=f"./vlaloop doctor {path} --repair",
        )
    name = format_of(path) if source_format == "auto" else source_format
    if name is None:
        raise _not_understood(path)
    adapter = lookup(SOURCES, name, "source format")
    _all_taken(path, read, name, adapter.TAKES)
    return adapter(path, read)


def format_of(path: Path) -> str | None:
    """The format whose layout this is, of those in SOURCES; None for none of them."""
    return next((name for name in SOURCES if lookup(SOURCES, name, "source format").recognises(path)), None)


def _not_understood(path: Path) -> UserError:
    """LAKE-002, with what there is instead: the beginnings of a LeRobot folder, or sources a folder further down."""
    what = f"not a source that is understood (known formats: {', '.join(sorted(SOURCES))})"
    step = "name the folder that holds meta/info.json, or the HDF5 file, or give ingest.format"
    folders = sorted(each for each in path.iterdir() if each.is_dir()) if path.is_dir() else []
    if {"data", "videos", "meta"} & {each.name for each in folders}:
        what = "a LeRobot folder without its meta/info.json"
        step = "copy the data set again, or write meta/info.json: nothing else says what its columns and cameras are"
    elif sets := [each.name for each in folders if format_of(each)]:
        more = ", …" if len(sets) > SHOWN_SETS else ""
        what = f"a folder that holds {len(sets)} sets: {', '.join(sets[:SHOWN_SETS])}{more}"
        step = f"name one of them: {path / sets[0]}"
    return UserError("LAKE-002", what, where=str(path), next_step=step)


def _all_taken(path: Path, read: ReadSpec, source_format: str, takes: frozenset[str]) -> None:
    """Raises UserError LAKE-037 for what is declared and would be ignored."""
    usual = asdict(AS_THE_SOURCE_SAYS)
    changed = [name for name, value in asdict(read).items() if value != usual[name]]
    idle = [name for name in changed if name not in takes | TAKEN_BY_ALL]
    if idle:
        raise UserError(
            "LAKE-037",
            f"a source of format {source_format!r} says {idle[0]} itself; ingest.read.{idle[0]} would change nothing",
            where=str(path),
            done="nothing was read",
            next_step=f"leave ingest.read.{idle[0]} out",
        )


def episodes(path: Path, read: ReadSpec = AS_THE_SOURCE_SAYS, *, source_format: str = "auto") -> Iterator[Episode]:
    """The episodes of the source at `path`, streaming."""
    return open_source(path, read, source_format=source_format).episodes()
