"""A finished ingest stands as long as its data set does; what could not be read is looked at again."""

import errno
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from data_lake import examine
from data_lake.files import remove
from data_lake.refs import DatasetRef
from data_lake.sources import files
from data_lake.sources.snapshot import snapshot
from data_lake.specs import IngestSpec
from data_lake.standing import lost, unread
from data_lake.store import records
from data_lake.tables import versions
from data_lake.video import VideoUnreadable
from errors import UserError
from tasks.build import Built, build
from tasks.catalogue import ingest as STAGE
from tasks.events import read_events
from tasks.runtime import Runtime
from tasks.specs import IngestStage
from tests.data_lake.recordings import write_v2

LENGTHS = (5, 6, 7)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A lake, and a source for it."""

    runtime: Runtime
    source: Path

    def ingest(self, source: Path | None = None, **changes: Any) -> Built:
        spec = IngestSpec(dataset="one", embodiment="tests.tasks.test_ingest:CART")
        ref = snapshot(source or self.source, self.runtime.home / "snapshots")
        return build(STAGE, IngestStage(ingest=replace(spec, **changes)), ref, runtime=self.runtime)

    def versions(self, dataset: str) -> list[int]:
        return versions(self.runtime.lake / "datasets" / dataset)

    @property
    def events(self) -> list[str]:
        found = read_events(self.runtime.home, self.runtime.run_id)
        return [each["event"] for each in found if each["event"] in ("start", "cached", "built", "failed")]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    runtime = Runtime(lake=tmp_path / "lake", home=tmp_path / "home", run_id="run-1", label="x")
    return Place(runtime=runtime, source=write_v2(tmp_path / "v2", LENGTHS))


def test_the_name_of_the_data_set_is_what_an_ingest_is(place: Place) -> None:
    first, other = place.ingest(), place.ingest(dataset="two")
    assert (first.ref.fingerprint, other.is_cached) == (other.ref.fingerprint, False)
    assert isinstance(other.ref, DatasetRef) and (other.ref.dataset, other.ref.num_new) == ("two", 3)
    assert place.versions("one") == place.versions("two") == [1]
    assert place.ingest().is_cached and place.ingest(dataset="two").is_cached
    with pytest.raises(UserError) as refused:
        place.ingest(dataset="../../x")
    assert refused.value.code == "LAKE-034"


@pytest.mark.parametrize("harm", ["gone", "another of that name"])
def test_a_record_counts_while_its_data_set_holds_that_version(place: Place, harm: str, tmp_path: Path) -> None:
    first = place.ingest()
    assert lost(place.runtime.lake, first.record) == ""
    remove(place.runtime.lake / "datasets/one")
    if harm != "gone":
        place.ingest(write_v2(tmp_path / "other", (9, 8, 4)))
    assert "one@1" in lost(place.runtime.lake, first.record)
    again = place.ingest()
    assert not again.is_cached and again.ref.fingerprint == first.ref.fingerprint
    assert isinstance(again.ref, DatasetRef) and again.ref.num_new == 3
    assert lost(place.runtime.lake, again.record) == "" and place.ingest().is_cached
    assert [each["revoked"]["who"] for each in records(place.runtime.lake) if "revoked" in each] == ["vlaloop"]


ERROR = OSError(errno.EIO, "Input/output error")


def failing_once(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, which: str, error: Exception) -> None:
    """The first call that reads a file whose path holds `which` meets `error`."""
    true, left = getattr(module, name), [1]

    def read(path: Path, *args: Any, **kwargs: Any) -> Any:
        if which in str(path) and left and left.pop():
            raise error
        return true(path, *args, **kwargs)

    monkeypatch.setattr(module, name, read)


@pytest.mark.parametrize(
    ("module", "name", "which", "error"),
    [
        (examine, "index_video", "episode_000001.mp4", VideoUnreadable(str(ERROR))),
        (files.pq, "ParquetFile", "episode_000001.parquet", ERROR),
    ],
)
def test_a_read_that_failed_once_is_repeated(
    place: Place, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, which: str, error: Exception
) -> None:
    failing_once(monkeypatch, module, name, which, error)
    first = place.ingest()
    assert isinstance(first.ref, DatasetRef) and (first.ref.num_episodes, first.ref.num_quarantined) == (2, 1)
    assert unread(place.runtime.lake, first.record).startswith("looked at again: episode 1 (LAKE-0")
    again = place.ingest()
    assert isinstance(again.ref, DatasetRef) and (again.ref.num_episodes, again.ref.num_quarantined) == (3, 0)
    assert not again.is_cached and unread(place.runtime.lake, again.record) == "" and place.ingest().is_cached


def test_what_stays_unreadable_is_looked_at_and_leaves_nothing(place: Place) -> None:
    """No slot and no version per look, however often."""
    file = next(place.source.rglob("episode_000001.mp4"))
    file.write_bytes(file.read_bytes()[:400])
    first = place.ingest()
    for _ in range(2):
        assert place.ingest().is_cached
    assert place.events == ["start", "built", *["start", "cached"] * 2]
    assert len(records(place.runtime.lake)) == 1 and place.versions("one") == [1]
    kept = place.runtime.lake / "ingest" / first.record["fingerprint"] / "attempts"
    assert [path.name for path in kept.iterdir()] == ["1"]
    left_out = json.loads((place.runtime.lake / first.ref.uri / "quarantine.json").read_text())
    assert [each["lasting"] for each in left_out] == [False]
