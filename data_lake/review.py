"""Every episode of a source in order: taken from the ledger where it is known there, examined where it is not."""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from data_lake.examine import Examined, examine
from data_lake.findings import Finding
from data_lake.ledger import RUN_EPISODES, Ledger, Run, Verdict
from data_lake.sources.episode import Source
from data_lake.specs import ReadSpec
from data_lake.tally import Sums, Tally


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """An episode and all that is to be said of it. examined: None where the ledger knows it."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    examined: Examined | None


@dataclass(slots=True)
class _Batch:
    """Neighbours that were examined one after another, on their way into the ledger."""

    ledger: Ledger
    verdicts: list[Verdict] = field(default_factory=list)
    sums: Sums = field(default_factory=Sums)
    lasting: bool = True

    def add(self, verdict: Verdict, examined: Examined) -> None:
        self.verdicts.append(verdict)
        self.sums.merge(examined.sums)
        # Rows that could not be read are read again: the disk may have been to blame.
        self.lasting &= examined.episode.lasting and examined.episode.rows is not None

    def close(self) -> None:
        if self.verdicts and self.lasting:
            self.ledger.put(self.verdicts, self.sums)
        self.verdicts, self.sums, self.lasting = [], Sums(), True


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
) -> Generator[Seen]:
    """digests: of the source's files. is_held: whether the rows of a sound episode are needed no more. check: called
    between episodes."""
    known = deque(ledger.known(is_held))
    left_out = {place: count for run in known for place, count in run.left_out.items()}
    batch = _Batch(ledger=ledger)
    with closing(
        examine(source, workers=workers, tally=tally, read=read, left_out=left_out, digests=digests, check=check)
    ) as episodes:  # its threads end before an error is told
        for examined in episodes:
            verdict = Verdict.of(examined)
            if len(batch.verdicts) >= RUN_EPISODES and verdict.part != batch.verdicts[-1].part:
                batch.close()
            while known and known[0].first < verdict.part:
                batch.close()
                yield from _taken(known.popleft(), tally)
            batch.add(verdict, examined)
            yield Seen(verdict=verdict, findings=examined.findings, examined=examined)
    batch.close()
    for run in known:
        yield from _taken(run, tally)


def _taken(run: Run, tally: Tally) -> Iterator[Seen]:
    tally.sums.merge(run.sums)
    for verdict in run.verdicts:
        beside: list[Finding] = []
        if verdict.content_hash:
            beside = tally.repeats(verdict.source_episode, verdict.content_hash, verdict.digests)
        yield Seen(verdict=verdict, findings=(*verdict.findings, *beside), examined=None)
