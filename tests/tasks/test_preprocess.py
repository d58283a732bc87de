"""The preprocess stage: with the functions of the real model, into a slot of its own, and what it tells people."""

import json
from pathlib import Path

import lance
import numpy as np
import pytest

from data_lake.refs import DatasetRef, PreprocessedRef
from data_lake.specs import PreprocessSpec
from errors import UserError
from model_core.specs import InputSpec
from tasks.build import Stage, build
from tasks.runtime import Progress, Report, Runtime, Summary
from tasks.specs import PolicyInputs, PreprocessStage
from tests.data_lake.lake_fixture import RECORDED, write_dataset, write_view

STAGE = Stage(fn="tasks.preprocess:preprocess", version=1, retries=0)
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


def test_a_request_that_does_not_fit_builds_nothing(runtime: Runtime, dataset: DatasetRef) -> None:
    with pytest.raises(UserError, match="PREP-004"):
        build(STAGE, spec_of(heldout_episodes=(3,)), dataset, runtime=runtime)
    assert STAGE.slot(spec_of(heldout_episodes=(3,)), dataset, lake=runtime.lake).record() is None
