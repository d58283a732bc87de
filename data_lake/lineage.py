"""Which data sets of a lake hold which content: by hash, so that the same episode is known under any number."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from data_lake import lake_meta
from data_lake.files import LakePath
from data_lake.findings import Finding, finding
from data_lake.tables import read_manifest, read_meta
from errors import UserError

Lineage = dict[str, list[tuple[str, int]]]
"""Content hash, of an edited episode also the one it came in with, and recording, to (data set, episode there)."""


def lineage(lake: LakePath) -> Lineage:
    """Of the newest version of every data set. One that cannot be read is left out: it has a doctor of its own."""
    held: Lineage = {}
    for folder in sorted((lake / "datasets").glob("*/manifests")):
        with suppress(UserError):
            manifest = read_manifest(folder.parent)
            if manifest is None:
                continue
            episodes = lake_meta.read_table(read_meta(folder.parent, manifest)[lake_meta.EPISODES])
            for row in episodes.to_pylist():
                for content in filter(None, (*lake_meta.contents_of(row), row.get(lake_meta.RECORDING))):
                    held.setdefault(content, []).append((folder.parent.name, row["episode_index"]))
    return held


def places(held: Lineage, *contents: str, but: str = "") -> list[tuple[str, int]]:
    """Where one of `contents` is held, each place once. but: a data set that does not count."""
    found = dict.fromkeys(place for content in contents for place in held.get(content, ()))
    return [place for place in found if place[0] != but]


def elsewhere(episode: int, places: Sequence[tuple[str, int]]) -> Iterator[Finding]:
    """LAKE-148 where there are any."""
    if places:
        named = ", ".join(f"episode {number} of {name}" for name, number in places[:3])
        yield finding("LAKE-148", named + (", …" if len(places) > 3 else ""), episode=episode)
