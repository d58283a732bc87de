"""The loop on an object store: the same slots and the same samples as in a folder; built here, used anywhere."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from upath import UPath

from benchmarks.slow_store import slow_store
from data_lake import objects
from data_lake.files import LakePath, tree
from data_lake.loader import Loader
from data_lake.mirror import mirror_of
from data_lake.objects import object_path
from data_lake.packing import Packing
from data_lake.refs import PackedRef, PreprocessedRef
from data_lake.store import damaged, records, revoke
from data_lake.tables import open_table, read_manifest
from errors import Transient
from flows.commands.lake import gc
from flows.places import Places
from flows.plan import make_plan
from flows.profile import load_profile
from flows.recipe import load, resolve
from flows.screen import Screen
from flows.session import look_at
from tasks import catalogue as stages
from tasks.build import Stage, build
from tasks.runtime import Runtime
from tests.data_lake.test_writer import append
from tests.tasks.fake_stages import CountSpec


def until_packed(source: str, lake: LakePath, home: Path) -> tuple[PreprocessedRef, PackedRef]:
    """A short gr1 recipe, as far as data go."""
    recipe = load("gr1", (f"ingest.source={json.dumps(source)}", "preprocess.sample_stride=32"))
    runtime = load_profile("laptop", Places(lake=lake, home=home), run_id="run", label="gr1")
    loop, dataset = resolve(recipe), look_at(source, lake=lake, home=home)
    dataset = build(stages.ingest, loop.ingest, dataset, runtime=runtime).ref
    preprocessed = build(stages.preprocess, loop.preprocess, dataset, runtime=runtime).ref
    packed = build(stages.pack, loop.pack, preprocessed, runtime=runtime).ref
    assert isinstance(preprocessed, PreprocessedRef) and isinstance(packed, PackedRef)
    return preprocessed, packed


def first_batch(lake: LakePath, refs: tuple[PreprocessedRef, PackedRef]) -> dict[str, Any]:
    preprocessed, packed = (lake / ref.uri for ref in refs)
    batch = Loader(preprocessed, Packing.load(packed), seed=0, rows_per_step=2).batch(0)
    return {name: getattr(batch, name) for name in type(batch).__slots__}


COUNT = Stage(fn="tests.tasks.fake_stages:count", version=1, retries=0)


def test_a_failed_stage_goes_on_and_a_finished_one_is_served(bucket: UPath, tmp_path: Path) -> None:
    runtime = Runtime(lake=bucket, home=tmp_path / "home", run_id="run", label="x", lease_s=1.0)
    spec = CountSpec(steps=3, fail="bug", mend=str(tmp_path / "mended"))
    with pytest.raises(ValueError, match="broken"):
        build(COUNT, spec, runtime=runtime)
    assert records(bucket) == []
    (tmp_path / "mended").touch()
    built = build(COUNT, spec, runtime=runtime)
    assert built.record["attempt"] == 2 and not built.is_cached and damaged(bucket, built.record) == []
    again = build(COUNT, spec, runtime=replace(runtime, home=tmp_path / "elsewhere", run_id="other"))
    assert again.is_cached and again.ref == built.ref


def test_a_store_that_goes_away_is_worth_a_retry(
    bucket: UPath, object_store: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with slow_store(object_store["AWS_ENDPOINT_URL"], latency_s=0.0) as (address, traffic):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")  # what is lost here stays lost
        lake = object_path(str(bucket))
        runtime = Runtime(lake=lake, home=tmp_path, run_id="run", label="x", lease_s=1.0)
        build(COUNT, CountSpec(steps=1), runtime=runtime)
        append(lake, 1)
        manifest = read_manifest(lake)
        assert traffic.requests["PUT"] > 1 and manifest is not None
    with pytest.raises(Transient, match="does not answer"):
        build(COUNT, CountSpec(steps=2), runtime=runtime)
    with pytest.raises(Transient, match="does not answer"):
        open_table(lake, manifest, "frames")


@pytest.mark.slow
def test_slots_and_batches_are_those_of_a_folder(
    shared_data: Path, bucket: UPath, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a source on the store into a lake on the store; read where nothing of it was built."""
    objects.upload(shared_data / "lerobot-v2.0-gr1-picknplace", bucket.parent / "in/gr1", lambda: None)
    here = until_packed(str(shared_data / "lerobot-v2.0-gr1-picknplace"), tmp_path / "lake", tmp_path / ".vlaloop")
    there = until_packed(f"{bucket.parent}/in/gr1", bucket, tmp_path / "other")
    assert there == here
    mine, theirs = first_batch(tmp_path / "lake", here), first_batch(bucket, there)
    for name, value in mine.items():
        np.testing.assert_array_equal(value, theirs[name], err_msg=name)
    assert [record["stage"] for record in records(bucket)] == ["ingest", "preprocess", "pack"]
    copies = mirror_of(bucket, tmp_path / "other")
    assert len(list(copies.glob("*/*/attempts/1"))) == 3
    gc(Places(lake=bucket, home=tmp_path / "other"), 0.0, False, Screen(as_json=False, quiet=True, debug=False))
    assert not list(copies.glob("*/*/attempts/1"))
    np.testing.assert_array_equal(first_batch(bucket, there)["images"], mine["images"])


@pytest.mark.slow
def test_a_lake_that_moved_to_a_store_is_gone_on_with(
    smoke_lake: tuple[Path, Path], bucket: UPath, tmp_path: Path
) -> None:
    """Everything is done there; what is revoked is built anew, on a machine that has none of it, and put back."""
    objects.upload(smoke_lake[0], bucket, lambda: None)
    recipe = load("smoke")
    planned = {each.stage.name: each for each in make_plan(recipe, bucket, None)}
    assert {each.state for each in planned.values()} == {"done"} and len(planned) == 8
    refs = {name: each.slot.ref() for name, each in planned.items() if each.slot}
    assert planned["export"].slot and revoke(planned["export"].slot, why="a test", who="it")
    runtime = load_profile("laptop", Places(lake=bucket, home=tmp_path / "home"), run_id="again", label="smoke")
    loop = resolve(recipe)
    export = build(stages.export, loop.export, refs["train"], refs["preprocess"], runtime=runtime)
    report = build(stages.evaluate, loop.evaluate, export.ref, refs["preprocess"], runtime=runtime)
    assert not export.is_cached and not report.is_cached
    for record in (export.record, report.record):
        assert record["files"] and damaged(bucket, record) == []
    assert [each.state for each in make_plan(recipe, bucket, None)] == ["done"] * 7 + ["build"]
    held = {path.relative_to(mirror_of(bucket, tmp_path / "home")).parts[0] for path in tree(runtime.home / "mirror")}
    assert held == {"train", "export", "evaluate"}, "samples are read from where they are"
