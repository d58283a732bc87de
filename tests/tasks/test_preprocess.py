"""The preprocess stage: with the functions of the real model, into a slot of its own, and what it tells people."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import lance
import numpy as np
import pytest
from upath import UPath

from data_lake import objects
from data_lake.files import read_bytes, tree
from data_lake.mirror import mirror_of
from data_lake.refs import DatasetRef, PreprocessedRef
from data_lake.specs import PreprocessSpec
from data_lake.store import damaged, revoke
from errors import UserError
from model_core.specs import InputSpec
from tasks import catalogue
from tasks.build import build
from tasks.runtime import Progress, Report, Runtime, Summary
from tasks.specs import PolicyInputs, PreprocessStage
from tests.data_lake.lake_fixture import RECORDED, write_dataset, write_view

STAGE = replace(catalogue.preprocess, retries=0)
INPUTS = InputSpec(views=("top", "corner"), image_size=8, state="token", tokenizer="words", max_text_tokens=8)


def spec_of(inputs: InputSpec = INPUTS, **changes: object) -> PreprocessStage:
    wanted = {"sample_stride": 2, "heldout_episodes": (16,)} | changes
    return PreprocessStage(preprocess=PreprocessSpec(**wanted), policy=PolicyInputs(inputs=inputs))


@pytest.fixture
def reports() -> list[Report]:
    return []


@pytest.fixture
def runtime(tmp_path: Path, reports: list[Report]) -> Runtime:
    return Runtime(lake=tmp_path / "lake", home=tmp_path / "home", run_id="run-1", sink=reports.append)


@pytest.fixture
def dataset(runtime: Runtime) -> DatasetRef:
    """The fabricated recordings as a data set of the lake, with the view of an ingest."""
    folder = runtime.lake / "datasets" / "coded"
    folder.mkdir(parents=True)
    write_view(runtime.lake / "ingest" / "view", RECORDED, write_dataset(folder, RECORDED))
    return DatasetRef(
        uri="ingest/view", fingerprint="d" * 16, dataset="coded", version=1, num_episodes=7, num_quarantined=0,
        num_frames=47, num_findings=0,
    )  # fmt: skip


def test_builds_samples_and_says_so(runtime: Runtime, dataset: DatasetRef, reports: list[Report]) -> None:
    ref = build(STAGE, spec_of(), dataset, runtime=runtime).ref
    assert isinstance(ref, PreprocessedRef)
    assert (ref.num_samples, ref.num_heldout, ref.num_views) == (25, 4, 43)
    folder = runtime.path(ref.uri)
    card = json.loads((folder / "card.json").read_text())
    assert card["embodiment_layout"]["name"] == card["embodiment"] == "metaworld_sawyer"
    assert card["inputs"]["views"] == ["top", "corner"]
    rows = lance.dataset(str(folder / "samples.lance")).to_table(columns=["view_top", "text_tokens"]).to_pylist()
    assert np.frombuffer(rows[1]["view_top"], np.uint8).reshape(8, 8, 3)[4, 4].tolist() == [1, 2, 100]
    assert [card["tokenizer"]["words"][token] for token in rows[0]["text_tokens"]] == ["open", "the", "drawer"]
    assert [report for report in reports if isinstance(report, Progress)][-1].done == 7
    (summary,) = (report for report in reports if isinstance(report, Summary))
    assert summary.line == "25 samples (4 held out)"


def test_a_blind_policy_sees_grey(runtime: Runtime, dataset: DatasetRef) -> None:
    grey = InputSpec(
        views=("top", "corner"), image_size=8, sight="grey", state="token", tokenizer="words", max_text_tokens=8
    )
    ref = build(STAGE, spec_of(grey), dataset, runtime=runtime).ref
    pixels = lance.dataset(str(runtime.path(ref.uri) / "samples.lance")).to_table()["view_corner"].to_pylist()
    assert {value for image in pixels if image is not None for value in image} == {128}


def grown(runtime: Runtime, dataset: DatasetRef, num_episodes: int) -> DatasetRef:
    """A view of some of the episodes, as an ingest of fewer files would have given."""
    entries = json.loads((runtime.path(dataset.uri) / "episodes.json").read_text())
    folder = runtime.lake / "ingest" / f"first-{num_episodes}"
    folder.mkdir()
    content = {**entries, "episodes": entries["episodes"][:num_episodes]}
    (folder / "episodes.json").write_text(json.dumps(content))
    uri = folder.relative_to(runtime.lake).as_posix()
    return replace(dataset, uri=uri, fingerprint=f"{num_episodes:016d}", num_episodes=num_episodes)


def test_what_is_appended_alone_is_prepared(
    runtime: Runtime, dataset: DatasetRef, reports: list[Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of the finished slot are linked, vouched for by its digests, and all that the record names is sound."""
    monkeypatch.setattr("data_lake.blocks.MAX_EPISODES", 1)
    spec = spec_of(heldout_episodes=())
    first = build(STAGE, spec, grown(runtime, dataset, 6), runtime=runtime)
    second = build(STAGE, spec, dataset, runtime=runtime)
    summary = [report for report in reports if isinstance(report, Summary)][-1]
    assert summary.line == "25 samples (0 held out) · 6 episodes as prepared earlier"
    folders = [runtime.path(built.ref.uri) for built in (first, second)]
    shared = {path.name for path in (folders[0] / "samples.lance/data").iterdir()} & {
        path.name for path in (folders[1] / "samples.lance/data").iterdir()
    }
    assert len(shared) == 6
    assert all((folders[0] / "samples.lance/data" / n).samefile(folders[1] / "samples.lance/data" / n) for n in shared)
    assert damaged(runtime.lake, second.record) == []
    fresh = replace(runtime, lake=runtime.lake.with_name("fresh"))
    shutil.copytree(runtime.lake / "ingest", fresh.lake / "ingest")
    shutil.copytree(runtime.lake / "datasets", fresh.lake / "datasets")
    alone = fresh.path(build(STAGE, spec, dataset, runtime=fresh).ref.uri)
    assert (alone / "card.json").read_bytes() == (folders[1] / "card.json").read_bytes()
    for table in ("samples.lance", "steps.lance"):
        assert lance.dataset(str(alone / table)).to_table() == lance.dataset(str(folders[1] / table)).to_table()


@pytest.mark.parametrize("kind", ["samples.lance/data", "steps.lance/data", "blocks"])
def test_a_damaged_block_is_made_anew(
    kind: str, runtime: Runtime, dataset: DatasetRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of six blocks one lost a bit since it was made: five are adopted, and what comes out is as if none had."""
    monkeypatch.setattr("data_lake.blocks.MAX_EPISODES", 1)
    spec = spec_of(heldout_episodes=())
    first = runtime.path(build(STAGE, spec, grown(runtime, dataset, 6), runtime=runtime).ref.uri)
    adopted = {
        path.name
        for block in first.glob("blocks/*.json")
        for path in (first / kind).iterdir()
        if kind == "blocks" or path.name in block.read_text()
    }
    path = first / kind / min(adopted)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    second = build(STAGE, spec, dataset, runtime=runtime)
    assert "5 episodes as prepared earlier" in second.record["summary"]["line"]
    assert damaged(runtime.lake, second.record) == []
    fresh = replace(runtime, lake=runtime.lake.with_name("fresh"))
    shutil.copytree(runtime.lake / "ingest", fresh.lake / "ingest")
    shutil.copytree(runtime.lake / "datasets", fresh.lake / "datasets")
    alone = build(STAGE, spec, dataset, runtime=fresh).ref
    for table in ("samples.lance", "steps.lance"):
        found = lance.dataset(str(runtime.path(second.ref.uri) / table)).to_table()
        assert found == lance.dataset(str(fresh.path(alone.uri) / table)).to_table()


def test_on_an_object_store_what_another_machine_prepared_is_adopted(
    runtime: Runtime, dataset: DatasetRef, bucket: UPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pictures are copied inside the store and never come here, not even when the build dies once and goes on."""
    monkeypatch.setattr("data_lake.blocks.MAX_EPISODES", 1)
    spec, fewer = spec_of(heldout_episodes=()), grown(runtime, dataset, 6)
    alone = build(STAGE, spec, dataset, runtime=runtime).ref
    for name in ("datasets", "ingest"):
        objects.upload(runtime.lake / name, bucket / name, lambda: None)
    here, there = (replace(runtime, lake=bucket, home=tmp_path / name) for name in ("here", "there"))
    first = build(STAGE, spec, fewer, runtime=here)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("data_lake.preprocess.make_card", Mock(side_effect=KeyboardInterrupt))
        build(STAGE, spec, dataset, runtime=there)
    second = build(STAGE, spec, dataset, runtime=there)
    assert "7 episodes as prepared earlier" in second.record["summary"]["line"], "one by the build that died"
    assert second.ref == replace(alone, uri=f"preprocess/{alone.fingerprint}/attempts/2")
    assert damaged(bucket, first.record) == damaged(bucket, second.record) == []
    for table in ("samples.lance", "steps.lance"):
        found = lance.dataset(str(bucket / second.ref.uri / table)).to_table()
        assert found == lance.dataset(str(runtime.path(alone.uri) / table)).to_table()
    assert read_bytes(bucket / second.ref.uri / "card.json") == read_bytes(runtime.path(alone.uri) / "card.json")
    pictures = [name for name in second.record["files"] if "samples.lance/data" in name]
    fetched = list(tree(mirror_of(bucket, there.home) / second.ref.uri / "samples.lance/data"))
    assert (len(pictures), len(fetched)) == (14, 8), "of each block a file of places, and the seventh's pictures"


def test_a_slot_that_was_revoked_is_built_from_nothing(
    runtime: Runtime, dataset: DatasetRef, reports: list[Report]
) -> None:
    build(STAGE, spec_of(), dataset, runtime=runtime)
    assert revoke(STAGE.slot(spec_of(), dataset, lake=runtime.lake), why="bad", who="me")
    assert not build(STAGE, spec_of(), dataset, runtime=runtime).is_cached
    assert "as prepared earlier" not in [report for report in reports if isinstance(report, Summary)][-1].line


def test_a_killed_attempt_is_gone_on_with(
    runtime: Runtime, dataset: DatasetRef, reports: list[Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It died when all blocks were there and nothing else; none is made again."""

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("data_lake.preprocess.make_card", die)
        build(STAGE, spec_of(), dataset, runtime=runtime)
    built = build(STAGE, spec_of(), dataset, runtime=runtime)
    assert "7 episodes as prepared earlier" in built.record["summary"]["line"]
    assert built.record["attempt"] == 2
    assert damaged(runtime.lake, built.record) == []


@pytest.mark.parametrize("kind", ["samples.lance/data", "steps.lance/data", "blocks"])
def test_a_block_of_a_killed_attempt_that_lost_a_bit_is_made_anew(
    kind: str, runtime: Runtime, dataset: DatasetRef, reports: list[Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("data_lake.blocks.MAX_EPISODES", 1)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("data_lake.preprocess.make_card", Mock(side_effect=KeyboardInterrupt))
        build(STAGE, spec_of(), dataset, runtime=runtime)
    (folder,) = runtime.lake.glob(f"preprocess/*/attempts/1/{kind}")
    path = min(folder.iterdir())
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    built = build(STAGE, spec_of(), dataset, runtime=runtime)
    assert "6 episodes as prepared earlier" in built.record["summary"]["line"]
    assert damaged(runtime.lake, built.record) == []


def test_jpeg_is_another_slot_and_tells_its_fidelity(
    runtime: Runtime, dataset: DatasetRef, reports: list[Report]
) -> None:
    build(STAGE, spec_of(images="jpeg"), dataset, runtime=runtime)
    (summary,) = (report for report in reports if isinstance(report, Summary))
    assert [row["what"] for row in summary.table[-2:]] == ["psnr mean db", "psnr min db"]
    slots = [STAGE.slot(spec_of(**tier), dataset, lake=runtime.lake) for tier in ({}, {"images": "decoded"})]
    assert len({slot.fingerprint for slot in slots}) == 1
    assert not any(slot.record() for slot in slots)


def test_a_request_that_does_not_fit_builds_nothing(runtime: Runtime, dataset: DatasetRef) -> None:
    with pytest.raises(UserError, match="PREP-004"):
        build(STAGE, spec_of(heldout_episodes=(3,)), dataset, runtime=runtime)
    assert STAGE.slot(spec_of(heldout_episodes=(3,)), dataset, lake=runtime.lake).record() is None
