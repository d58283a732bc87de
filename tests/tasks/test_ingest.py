"""The ingest stage: a snapshot becomes part of a data set; what changed since is refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from data_lake.edits.compact import compact
from data_lake.edits.relabel import relabel
from data_lake.head import look_at_head
from data_lake.refs import DatasetRef, EpisodesRef, SourceRef
from data_lake.sources.snapshot import snapshot
from data_lake.specs import IngestSpec, ReadSpec
from data_lake.store import begin, slot_of
from errors import UserError
from model_core.embodiments import Embodiment
from tasks.ingest import ingest
from tasks.runtime import Progress, Report, Runtime, Summary
from tasks.specs import IngestStage
from tests.data_lake.recordings import change_episodes, write_v2, write_v3

LENGTHS = (8, 12, 10)
CART = Embodiment(
    name="cart",
    cameras=("front",),
    state_names=("x", "y", "z"),
    action_names=("dx", "dy"),
    state_units=("m",) * 3,
    action_units=("m",) * 2,
    control_hz=10.0,
    delta_mask=(False,) * 2,
    action_from_state=(-1,) * 2,
    action_low=None,
    action_high=None,
)
SPEC = IngestStage(ingest=IngestSpec(dataset="cart", embodiment="tests.tasks.test_ingest:CART"))


@pytest.fixture
def reports() -> list[Report]:
    return []


@pytest.fixture
def runtime(tmp_path: Path, reports: list[Report]) -> Runtime:
    return Runtime(lake=tmp_path / "lake", home=tmp_path / "home", run_id="run-1", sink=reports.append)


@pytest.fixture
def source(tmp_path: Path, runtime: Runtime) -> SourceRef:
    return snapshot(write_v2(tmp_path / "v2", LENGTHS), runtime.home / "snapshots")


def run(source: SourceRef | EpisodesRef, runtime: Runtime, spec: IngestStage = SPEC) -> DatasetRef:
    slot = slot_of(runtime.lake, "ingest", 1, spec, (source,))
    out = begin(slot, run_id=runtime.run_id, lease_s=60, on_wait=lambda _: None)
    assert out is not None
    return ingest(spec, source, out=out, runtime=runtime)


def test_a_snapshot_becomes_a_dataset(source: SourceRef, runtime: Runtime, reports: list[Report]) -> None:
    change_episodes(Path(source.path), 1, length=3)
    source = snapshot(Path(source.path), runtime.home / "snapshots")
    ref = run(source, runtime)
    assert (ref.dataset, ref.version, ref.num_episodes, ref.num_quarantined, ref.num_frames) == ("cart", 1, 2, 1, 18)
    folder = runtime.path(ref.uri)
    assert {path.name for path in folder.iterdir()} == {"episodes.json", "quarantine.json", "findings.json"}
    assert len(json.loads((folder / "findings.json").read_text())) == ref.num_findings
    assert (runtime.lake / "datasets/cart/manifests/000001.json").is_file()
    progress = [item for item in reports if isinstance(item, Progress)]
    assert [(item.done, item.total, item.unit) for item in progress] == [(n, 3, "episodes") for n in (1, 2, 3)]
    assert isinstance(reports[-1], Summary)
    assert reports[-1].line.startswith("2 ok · 1 quarantined · 18 frames")


def test_what_changed_since_the_run_began_is_refused(source: SourceRef, runtime: Runtime) -> None:
    change_episodes(Path(source.path), 1, length=3)
    with pytest.raises(UserError) as error:
        run(source, runtime)
    assert error.value.code == "LAKE-003" and not (runtime.lake / "datasets").exists()


def test_the_fingerprint_is_the_content(source: SourceRef, runtime: Runtime, tmp_path: Path) -> None:
    """Not the name of the data set, not the place, not the version of the format."""
    first = run(source, runtime)
    elsewhere = Path(shutil.copytree(source.path, tmp_path / "copy"))
    renamed = replace(SPEC, ingest=replace(SPEC.ingest, dataset="wagon"))
    second = run(snapshot(elsewhere, runtime.home / "snapshots"), replace(runtime, lake=tmp_path / "other"), renamed)
    third = run(snapshot(write_v3(tmp_path / "v3", elsewhere, LENGTHS), runtime.home / "snapshots"), runtime)
    assert first.fingerprint == second.fingerprint == third.fingerprint
    assert (third.version, second.dataset) == (1, "wagon")


def test_recorded_episodes_come_from_the_lake(runtime: Runtime, tmp_path: Path) -> None:
    v2 = write_v2(tmp_path / "v2", LENGTHS)
    write_v3(runtime.lake / "collect/x/attempts/1/episodes", v2, LENGTHS, declared={"render_every": 4})
    uri = "collect/x/attempts/1/episodes"
    ref = run(EpisodesRef(uri=uri, fingerprint="f" * 64, num_episodes=3, num_frames=30), runtime)
    assert ref.num_episodes == 3
    view = json.loads((runtime.path(ref.uri) / "episodes.json").read_text())
    assert view["meaning"]["render_every"] == 4
    assert {each["source"] for each in view["episodes"]} == {"collect"}
    assert [each["extra"]["seed"] for each in view["episodes"]] == [100, 101, 102]


def test_another_robot_is_refused(source: SourceRef, runtime: Runtime) -> None:
    spec = replace(SPEC, ingest=replace(SPEC.ingest, embodiment="metaworld_sawyer"))
    with pytest.raises(UserError) as error:
        run(source, runtime, spec)
    assert error.value.code == "LAKE-005"


def test_units_are_those_of_the_embodiment(source: SourceRef, runtime: Runtime) -> None:
    millimetres = replace(SPEC, ingest=replace(SPEC.ingest, read=ReadSpec(state_units=("m", "mm", "m"))))
    with pytest.raises(UserError, match="state is in other units .* first in dimension 1") as refused:
        run(source, runtime, millimetres)
    assert refused.value.code == "LAKE-005"
    metres = replace(SPEC, ingest=replace(SPEC.ingest, read=ReadSpec(state_units=("m",) * 3, action_units=("m",) * 2)))
    assert run(source, runtime, metres).num_episodes == 3


def test_compaction_and_a_copy_of_the_lake_rebuild_nothing(runtime: Runtime, source: SourceRef, tmp_path: Path) -> None:
    """The slot of a loop on `lake:cart`, and the data set that stages downstream are built on, are the same."""
    run(source, runtime)
    more = snapshot(write_v2(tmp_path / "more", (*LENGTHS, 7)), runtime.home / "snapshots")
    run(more, runtime)
    before = look_at_head(runtime.lake, "lake:cart")
    slot, ref = slot_of(runtime.lake, "ingest", 1, SPEC, (before,)), run(before, runtime)
    assert compact(runtime.lake, "cart", who="ada").is_new
    copied = Path(shutil.copytree(runtime.lake / "datasets", tmp_path / "other/datasets")).parent
    for lake in (runtime.lake, copied):
        after = look_at_head(lake, "lake:cart")
        assert slot_of(lake, "ingest", 1, SPEC, (after,)).fingerprint == slot.fingerprint
    there = run(look_at_head(copied, "lake:cart"), replace(runtime, lake=copied))
    assert there.fingerprint == ref.fingerprint and (ref.version, there.version) == (2, 3)
    assert relabel(runtime.lake, "cart", [("0", "wait")], who="ada").is_new
    assert look_at_head(runtime.lake, "lake:cart").fingerprint != before.fingerprint
