"""Recordings of ROS 2: MCAP and SQLite files, alone or in rosbag2 folders, with or without their metadata.yaml.

Layout: https://github.com/ros2/rosbag2 and https://mcap.dev/spec. Files are read one by one by rosbags' storages: its
reader of folders drops every message of a topic whose QoS metadata.yaml spells otherwise than the file.
"""

import struct
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

import apsw
import yaml
from backports.zstd import ZstdError
from rosbags.interfaces import MessageDefinition, MessageDefinitionFormat
from rosbags.rosbag2.errors import ReaderError
from rosbags.rosbag2.storage_mcap import McapReader
from rosbags.rosbag2.storage_sqlite3 import Sqlite3Reader

from data_lake.findings import Finding, finding
from data_lake.sources.files import ODD, Unreadable, describe, ensure_present, natural
from data_lake.sources.resample import NANOSECONDS

SUFFIXES = (".mcap", ".db3")
METADATA = "metadata.yaml"
BROKEN = (*ODD, ReaderError, apsw.Error, ZstdError, struct.error, OSError, EOFError, RuntimeError, MemoryError)
"""What rosbags raises for a damaged file, its own errors and those of what it is built on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Topic:
    """msgtype: of its first channel. rate_hz: its mean over the recording, 0 for fewer than two messages."""

    name: str
    msgtype: str
    count: int
    rate_hz: float

    def __str__(self) -> str:
        rate = f", {self.rate_hz:.3g} Hz" if self.rate_hz else ""
        return f"{self.name} ({self.msgtype}, {self.count} message{'' if self.count == 1 else 's'}{rate})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """log_ns: when it was received. content: CDR."""

    topic: str
    msgtype: str
    log_ns: int
    content: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """One bag. files: its parts in their order. definitions: of message types, as far as the files bring them.

    unreadable: why it cannot be read. findings: what is odd about it, without its episode.
    """

    name: str
    files: tuple[Path, ...]
    topics: Mapping[str, Topic] = field(default_factory=dict)
    definitions: Mapping[str, MessageDefinition] = field(default_factory=dict)
    unreadable: Unreadable | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def all_files(self) -> tuple[Path, ...]:
        """The parts, and what lies beside them and is read too."""
        beside = (path / METADATA for path in {file.parent for file in self.files})
        logs = (file.with_name(f"{file.name}-wal") for file in self.files)
        return (*self.files, *sorted(path for path in (*beside, *logs) if path.is_file()))

    def messages(self, topics: Collection[str], start_ns: int = 0, stop_ns: int = 2**63 - 1) -> Generator[Message]:
        """Those received in [start_ns, stop_ns), part by part, in the order of reception within one.

        Raises Unreadable LAKE-120 where the file is damaged.
        """
        for file in self.files:
            with _opened(file) as storage:
                channels = [channel for channel in storage.connections if channel.topic in topics]
                for channel, log_ns, content in storage.messages(channels, start_ns, stop_ns) if channels else ():
                    msgtype = _full(channel.msgtype)
                    yield Message(topic=channel.topic, msgtype=msgtype, log_ns=log_ns, content=bytes(content))


def is_recording(path: Path) -> bool:
    """A storage file, or a folder that directly holds some or a metadata.yaml of rosbag2.

    Files in one folder are parts of one recording, as rosbag2 splits them; where they are not, their gaps cut it.
    """
    if path.is_file():
        return path.suffix in SUFFIXES
    return path.is_dir() and (bool(_storages(path)) or _is_metadata(path / METADATA))


def recordings_in(path: Path) -> list[Path]:
    """The recording itself, or those directly below it in natural order."""
    if is_recording(path):
        return [path]
    below = [folder for folder in path.glob("*") if folder.is_dir() and not folder.name.startswith(".")]
    return sorted((folder for folder in below if is_recording(folder)), key=natural)


def survey(path: Path) -> Recording:
    """What the bag at `path` says of itself; its messages are not read."""
    files, findings = tuple([path] if path.is_file() else _storages(path)), []
    try:
        if (path / METADATA).is_file():
            files, findings = _listed(path, files)
        topics, definitions = _contents(files)
    except Unreadable as error:
        return Recording(name=path.stem if path.is_file() else path.name, files=files, unreadable=error)
    name = path.stem if path.is_file() else path.name
    return Recording(name=name, files=files, topics=topics, definitions=definitions, findings=tuple(findings))


def _storages(folder: Path) -> list[Path]:
    files = [file for file in folder.glob("*") if file.suffix in SUFFIXES and not file.name.startswith(".")]
    return sorted((file for file in files if file.is_file()), key=natural)


def _is_metadata(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return b"rosbag2_bagfile_information" in file.read(4096)


def _listed(folder: Path, found: tuple[Path, ...]) -> tuple[tuple[Path, ...], list[Finding]]:
    """The parts that metadata.yaml lists, in its order. Raises Unreadable: LAKE-009, LAKE-120."""
    try:
        said = yaml.safe_load((folder / METADATA).read_text(encoding="utf-8"))["rosbag2_bagfile_information"]
        files = tuple(folder / PurePath(name).name for name in said["relative_file_paths"])
        mode = str(said.get("compression_mode") or "none").lower()
    except (*ODD, yaml.YAMLError, RecursionError) as error:
        detail = f"it cannot be read ({describe(error)})"
        return found, [finding("LAKE-128", detail, file=f"{folder.name}/{METADATA}")]
    if mode != "none":
        raise Unreadable("LAKE-120", f"rosbag2 compressed it by {mode}")
    if missing := [file.name for file in files if not file.is_file()]:
        raise Unreadable("LAKE-009", ", ".join(missing))
    if unlisted := [file.name for file in found if file not in files]:
        detail = f"it does not list {', '.join(unlisted)}"
        return files, [finding("LAKE-128", detail, file=f"{folder.name}/{METADATA}")]
    return files, []


def _contents(files: Collection[Path]) -> tuple[dict[str, Topic], dict[str, MessageDefinition]]:
    """Topics by name and definitions by type. Raises Unreadable."""
    counts: dict[str, int] = {}
    types: dict[str, str] = {}
    definitions: dict[str, MessageDefinition] = {}
    first_ns, end_ns = 2**63 - 1, 0
    for file in files:
        with _opened(file) as storage:
            first_ns, end_ns = min(first_ns, storage.metadata.start_time), max(end_ns, storage.metadata.end_time)
            for channel in storage.connections:
                counts[channel.topic] = counts.get(channel.topic, 0) + channel.msgcount
                types.setdefault(channel.topic, _full(channel.msgtype))
                if channel.msgdef.format != MessageDefinitionFormat.NONE:
                    definitions.setdefault(_full(channel.msgtype), channel.msgdef)
    seconds = (end_ns - 1 - first_ns) / NANOSECONDS
    rates = {name: (count - 1) / seconds if count > 1 and seconds > 0 else 0.0 for name, count in counts.items()}
    topics = {
        name: Topic(name=name, msgtype=types[name], count=counts[name], rate_hz=rates[name]) for name in sorted(counts)
    }
    return topics, definitions


def _full(msgtype: str) -> str:
    """`std_msgs/String`, as some recorders write it, is `std_msgs/msg/String`."""
    package, _, name = msgtype.partition("/")
    return f"{package}/msg/{name}" if name and "/" not in name else msgtype


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """rosbags' storage of one file. Raises Unreadable, whatever is wrong with it: LAKE-008, LAKE-009 or LAKE-120."""
    ensure_present(file, "LAKE-009")
    log = file.with_name(f"{file.name}-wal")
    if log.is_file() and log.stat().st_size:
        raise Unreadable("LAKE-120", f"messages of {file.name} still stand in {log.name}: open it once with sqlite3")
    is_mcap = file.suffix == ".mcap"
    if not is_mcap:
        _whole(file)
    try:
        # rosbags puts the path into a URI as it is
        storage = McapReader(file) if is_mcap else Sqlite3Reader(Path(quote(file.absolute().as_posix())))
        storage.open()
        with closing(storage):
            yield storage
    except BROKEN as error:
        raise Unreadable("LAKE-120", f"{file.name}: {describe(error)}") from error


def _whole(file: Path) -> None:
    """SQLite reads a file whose last pages are cut off as if they were empty: messages would be missing silently.

    Size of a page and number of pages: https://www.sqlite.org/fileformat.html#the_database_header.
    """
    with file.open("rb") as content:
        head = content.read(32)
    if len(head) == 32:
        page_size, num_pages = struct.unpack(">16xH10xI", head)
        expected = (page_size if page_size > 1 else 65536) * num_pages
        if file.stat().st_size < expected:
            raise Unreadable("LAKE-120", f"{file.name} has {file.stat().st_size:,} of {expected:,} bytes")
