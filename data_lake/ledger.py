"""What was examined before, kept beside a data set: parts of sources by their files' digests, and what they gave.

A cache: what is lost or torn is examined again. Neighbouring parts share a file, a run, with the sums over their rows.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import av

from data_lake.examine import Examined
from data_lake.files import LakePath, replace
from data_lake.findings import Finding
from data_lake.ledger_file import packed, unpacked
from data_lake.sources.episode import Part, Source
from data_lake.tally import Sums

FORM = f"3, PyAV {av.__version__}"
"""Of the ledger and of the examination itself; another demuxer may see other things."""

RUN_EPISODES = 32
RUN_NUMBERS = 1 << 16
"""Of each column are kept for quantiles; a run of usual episodes has no more."""

Stamp = tuple[int, int, int]  # size, mtime_ns, ctime_ns


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What examining one episode gave, without its rows. part: its place in the source. content_hash: "" for a bad
    one. recording: as `Examined` has it. digests: of what each camera shows. findings: those in the episode alone."""

    part: int
    source_episode: int
    file: str | None
    content_hash: str
    recording: str
    digests: Mapping[str, str]
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, examined: Examined) -> "Verdict":
        episode = examined.episode
        return cls(
            part=episode.part,
            source_episode=episode.source_episode,
            file=episode.file,
            content_hash=examined.content_hash,
            recording=examined.recording,
            digests=examined.digests,
            findings=examined.findings,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Neighbouring parts that were examined one after another. first: place of the first, one for each of keys."""

    first: int
    keys: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    sums: Sums

    @property
    def left_out(self) -> dict[int, int]:
        """Number of episodes by the place of their part."""
        counts = dict.fromkeys(range(self.first, self.first + len(self.keys)), 0)
        for verdict in self.verdicts:
            counts[verdict.part] += 1
        return counts


class Ledger:
    """Of one source, in a folder of the data set. read_as: all that is declared of it. digests: of its files' contents;
    parts with other files are never known."""

    def __init__(self, folder: LakePath, source: Source, read_as: str, digests: Mapping[Path, str]) -> None:
        self._folder = folder
        self._early: list[tuple[Sequence[Verdict], Sums]] = []
        self._stamps: dict[Path, Stamp | None] = {}
        card, self._parts = source.card, source.parts
        self._shared = {"card": repr((card.format, card.fps, card.features)), **source.shared}
        self._keys = tuple(_keys(self._parts, f"{FORM} {read_as}", digests))

    def known(self, is_held: Callable[[Verdict], bool]) -> Iterator[Run]:
        """Runs whose files, and all that they are read by, are as they were, and whose sound episodes `is_held`.

        To be asked for before the others are read: what is `put` must be of files that did not change since then."""
        there, place = {path.name for path in self._folder.glob("*.npz")}, 0
        while place < len(self._keys):
            run = self._load(place) if self._path(place).name in there else None
            if run is not None and all(is_held(verdict) for verdict in run.verdicts if verdict.content_hash):
                yield run
                place += len(run.keys)
            else:
                self._stamps |= {file: _stamp(file) for file in self._parts[place].files}
                place += 1

    def put(self, verdicts: Sequence[Verdict], sums: Sums) -> None:
        """Keep what these episodes gave: all those of their parts, with the sums over them."""
        first, last = verdicts[0].part, verdicts[-1].part
        keys = self._keys[first : last + 1]
        files = [file for part in self._parts[first : last + 1] for file in part.files]
        if not all(keys) or any(_stamp(file) != self._stamps[file] for file in files):
            return
        if not self._folder.parent.exists():  # an ingest in which nothing is sound makes no data set
            self._early.append((verdicts, sums))
            return
        for column in sums.columns.columns.values():
            column.rows.thin(RUN_NUMBERS)
        told = [{**asdict(each), "part": each.part - first} for each in verdicts]
        said = {"keys": keys, "shared": self._shared, "verdicts": told}
        replace(self._path(first), packed(said, sums))

    def close(self) -> None:
        """Once the data set is there: keep what came before it was."""
        early, self._early = self._early, []
        for verdicts, sums in early:
            self.put(verdicts, sums)

    def _load(self, place: int) -> Run | None:
        found = unpacked(self._path(place))
        if found is None:
            return None
        said, sums = found
        keys = tuple(said["keys"])
        if self._keys[place : place + len(keys)] != keys or not said["shared"].items() <= self._shared.items():
            return None
        verdicts = (
            {
                **each,
                "part": place + each["part"],
                "findings": tuple(Finding(**item) for item in each["findings"]),
            }
            for each in said["verdicts"]
        )
        return Run(first=place, keys=keys, verdicts=tuple(Verdict(**each) for each in verdicts), sums=sums)

    def _path(self, place: int) -> LakePath:
        return self._folder / f"{self._keys[place]}.npz"


def _keys(parts: Sequence[Part], read_as: str, digests: Mapping[Path, str]) -> Iterator[str]:
    """One per part, "" for what has no digest."""
    before = ""
    for part in parts:
        known = [digests.get(path, "") for path in part.files]
        follows = before if part.follows else ""
        whole = json.dumps([read_as, part.said, known, follows]).encode()
        before = hashlib.sha256(whole).hexdigest() if part.files and all(known) else ""
        yield before


def _stamp(file: Path) -> Stamp | None:
    """Other when a file was written to in between, even if its mtime was set back. None: it is gone."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
