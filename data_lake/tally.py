"""What only shows over all episodes of a source: ranges, statistics, repetitions, videos of other episodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from data_lake.findings import Finding, finding
from data_lake.schema import vectors
from data_lake.sources.episode import Episode, SourceCard
from data_lake.stated import Columns
from data_lake.statistics import Moments


@dataclass(slots=True)
class Sums:
    """What adds up over episodes, in whatever pieces it came. moments: of sound episodes by lake column. lengths: rows
    by episode. misfits: frames by (camera, episode) of videos that are not as long as their rows."""

    moments: dict[str, Moments] = field(default_factory=dict)
    columns: Columns = field(default_factory=Columns)
    lengths: dict[int, int] = field(default_factory=dict)
    misfits: dict[tuple[str, int], int] = field(default_factory=dict)

    def look(self, episode: Episode) -> list[Finding]:
        """Of any episode, sound or not, as its source has it."""
        if episode.rows is not None:
            self.lengths[episode.source_episode] = episode.rows.num_rows
        return self.columns.add(episode)

    def add(self, rows: pa.Table) -> None:
        """Canonical rows of a sound episode."""
        add_moments(self.moments, rows)

    def merge(self, other: "Sums") -> None:
        """What `other` adds up to, as if its episodes had come here."""
        for name, found in other.moments.items():
            known = self.moments.get(name)
            if known is None or len(known.mean_D) == len(found.mean_D):  # another width is said of its episode
                self.moments[name] = found if known is None else known.merged(found)
        self.columns.merge(other.columns)
        self.lengths |= other.lengths
        self.misfits |= other.misfits


@dataclass(slots=True)
class Tally:
    """sums: of all episodes. contents: by recording, in which episode it was seen first, and its content hash. videos:
    which was seen first in which episode."""

    sums: Sums = field(default_factory=Sums)
    contents: dict[str, tuple[int, str]] = field(default_factory=dict)
    repeated: list[tuple[int, int]] = field(default_factory=list)
    videos: dict[tuple[str, str], int] = field(default_factory=dict)

    def repeats(self, episode: int, recording: str, content_hash: str, digests: Mapping[str, str]) -> list[Finding]:
        """LAKE-147 when all of a sound episode was there before, under whatever words, else LAKE-033 for each of its
        videos that was.

        recording: "" for one that is not sound, and then nothing is said."""
        if not recording:
            return []
        first, content = self.contents.setdefault(recording, (episode, content_hash))
        seen = {camera: self.videos.setdefault((camera, digest), episode) for camera, digest in digests.items()}
        if first != episode:
            self.repeated.append((first, episode))
            return [repetition(first, episode, reworded=content != content_hash)]
        return [
            finding("LAKE-033", f"also episode {other}'s", episode=episode, camera=camera)
            for camera, other in seen.items()
            if other != episode
        ]

    def findings(self, card: SourceCard) -> list[Finding]:
        return [*self._still(), *self.sums.columns.findings(card), *self._neighbours(), *self._leaks(card)]

    def _still(self) -> list[Finding]:
        """LAKE-052, one per column with dimensions that never change."""
        found = []
        for name, moments in sorted(self.sums.moments.items()):
            still = np.flatnonzero(moments.max_D == moments.min_D)
            if moments.count > 1 and len(still):
                detail = f"{len(still)} of {len(moments.min_D)} in {name} ({ranges(still)})"
                found.append(finding("LAKE-052", detail))
        return found

    def _neighbours(self) -> list[Finding]:
        """LAKE-150 for a video that is as long as another episode; one whose own video does not fit comes first."""
        found = []
        for (camera, episode), num_frames in sorted(self.sums.misfits.items()):
            fitting = [number for number, length in self.sums.lengths.items() if length == num_frames]
            if fitting:
                nearest = min(fitting, key=lambda n: ((camera, n) not in self.sums.misfits, abs(n - episode), n))
                also = ", whose own video does not fit either" if (camera, nearest) in self.sums.misfits else ""
                detail = f"its {num_frames} frames would fit episode {nearest}{also}"
                found.append(finding("LAKE-150", detail, episode=episode, camera=camera))
        return found

    def _leaks(self, card: SourceCard) -> list[Finding]:
        """LAKE-149 where `train` and another split share an episode, or an episode's content."""
        train = card.splits.get("train", range(0))
        found = []
        for name, numbers in card.splits.items():
            if name == "train":
                continue
            both = [number for number in self.sums.lengths if number in train and number in numbers]
            if both:
                detail = f"{len(both)} of {name} are in train as well"
                found.append(finding("LAKE-149", detail, episode=both[0]))
            for first, second in self.repeated:
                for one, other in ((first, second), (second, first)):
                    if one in train and other in numbers and other not in train:
                        detail = f"{name} has it, train has the same content as episode {one}"
                        found.append(finding("LAKE-149", detail, episode=other))
        return found


def repetition(first: int, episode: int, *, reworded: bool) -> Finding:
    """LAKE-147 of `episode`. reworded: the first one has another instruction."""
    return finding("LAKE-147", f"of episode {first}" + (", under other words" if reworded else ""), episode=episode)


def add_moments(moments: dict[str, Moments], rows: pa.Table) -> None:
    """Merge those of canonical rows, by column."""
    for name in rows.column_names:
        kind = rows[name].type
        if pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type):
            rows_TD = vectors(rows[name])
            if rows_TD is not None:
                found = Moments.of(rows_TD)
                moments[name] = moments[name].merged(found) if name in moments else found


def ranges(numbers: np.ndarray) -> str:
    """`0-3, 7` for 0, 1, 2, 3, 7; not empty."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)
