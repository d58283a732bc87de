"""Sources by name. `auto` asks each format whether it knows the layout; a dotted name brings another one."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from data_lake.sources.episode import TAKEN_BY_ALL, Episode, Source
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


def open_source(path: Path, read: ReadSpec = AS_THE_SOURCE_SAYS, *, source_format: str = "auto") -> Source:
    """The source at `path`. Raises UserError LAKE-002 when no format knows it, NAME-001 for an unknown format."""
    if not path.exists():
        raise UserError(
            "LAKE-002",
            "the source does not exist",
            where=str(path),
            next_step="check the path (in a recipe: ingest.source)",
        )
    for name in SOURCES if source_format == "auto" else (source_format,):
        adapter = lookup(SOURCES, name, "source format")
        if source_format != "auto" or adapter.recognises(path):
            _all_taken(path, read, name, adapter.TAKES)
            return adapter(path, read)
    raise UserError(
        "LAKE-002",
        f"not a source that is understood (known formats: {', '.join(sorted(SOURCES))})",
        where=str(path),
        next_step="name the folder that holds meta/info.json, or the HDF5 file, or give ingest.format",
    )


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
