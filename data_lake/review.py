"""Every episode of a source in order: taken from the ledger where it is known there, examined where it is not."""

from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from data_lake.cluster import Cluster
from data_lake.examine import Examined, examine
from data_lake.examine_afar import examine_afar
from data_lake.findings import Finding
from data_lake.ledger import RUN_EPISODES, Ledger, Verdict
from data_lake.sources.episode import Source
from data_lake.specs import ReadSpec
from data_lake.tally import Sums, Tally

FLEETING = frozenset({"LAKE-023", "LAKE-031", "LAKE-152", "LAKE-153"})
"""Findings of videos and pictures that could not be read or decoded here and now."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """An episode and all that is to be said of it. examined: None where the ledger knows it."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    examined: Examined | None

    @property
    def lasting(self) -> bool:
        """Whether the same files give the same another time; what the ledger knows does."""
        return self.examined is None or is_lasting(self.examined)


@dataclass(slots=True)
class _Stretch:
    """Neighbours that were examined one after another, and the sums over them."""

    verdicts: list[Verdict] = field(default_factory=list)
    sums: Sums = field(default_factory=Sums)
    lasting: bool = True


class _Batch:
    """On its way into the ledger: whole parts, none with an episode that may turn out otherwise another time."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._run, self._part = _Stretch(), _Stretch()

    def add(self, verdict: Verdict, examined: Examined) -> None:
        if self._part.verdicts and verdict.part != self._part.verdicts[-1].part:
            self._end_part()
        self._part.verdicts.append(verdict)
        self._part.sums.merge(examined.sums)
        self._part.lasting &= is_lasting(examined)

    def _end_part(self) -> None:
        part, self._part = self._part, _Stretch()
        if part.lasting:
            self._run.verdicts += part.verdicts
            self._run.sums.merge(part.sums)
        if not part.lasting or len(self._run.verdicts) >= RUN_EPISODES:
            self._put()

    def _put(self) -> None:
        run, self._run = self._run, _Stretch()
        if run.verdicts:
            self._ledger.put(run.verdicts, run.sums)

    def close(self) -> None:
        """What comes next is no neighbour."""
        self._end_part()
        self._put()


def review(
    source: Source,
    ledger: Ledger,
    *,
    digests: Mapping[Path, str],
    is_held: Callable[[Verdict], bool],
    tally: Tally,
    read: ReadSpec,
    workers: int,
    check: Callable[[], None],
    cluster: Cluster | None = None,
) -> Generator[Seen]:
    """digests: of the source's files. is_held: whether the rows of a sound episode are needed no more. check: called
    between episodes. cluster: where episodes are examined, None for here, by threads."""
    known = deque(ledger.known(is_held))
    left_out = {place: count for run in known for place, count in run.left_out.items()}
    batch = _Batch(ledger)

    def seen(verdict: Verdict, examined: Examined | None = None) -> Seen:
        beside = tally.repeats(verdict.source_episode, verdict.recording, verdict.content_hash, verdict.digests)
        return Seen(verdict=verdict, findings=(*verdict.findings, *beside), examined=examined)

    begin = partial(examine, workers=workers) if cluster is None else partial(examine_afar, cluster=cluster)
    with closing(
        begin(source, tally=tally, read=read, left_out=left_out, digests=digests, check=check)
    ) as episodes:  # its threads and units end before an error is told
        for examined in episodes:
            verdict = Verdict.of(examined)
            while known and known[0].first < verdict.part:
                batch.close()
                tally.sums.merge(known[0].sums)
                yield from map(seen, known.popleft().verdicts)
            batch.add(verdict, examined)
            yield seen(verdict, examined)
    batch.close()
    for run in known:
        tally.sums.merge(run.sums)
        yield from map(seen, run.verdicts)


def is_lasting(examined: Examined) -> bool:
    """Whether the same files will give the same another time. What could not be read is read again: the disk, the
    network or this machine may have been to blame."""
    if examined.episode.rows is None or not examined.episode.lasting:
        return False
    return not any(item.code in FLEETING for item in examined.findings)
