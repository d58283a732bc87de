"""The pack stage: training samples only, lengths from views, words and state, and a line that says how full."""

import json
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from data_lake.packing import Packing
from data_lake.refs import PackedRef, PreprocessedRef
from data_lake.specs import PackSpec
from errors import UserError
from flows.recipes.tiny import RECIPE
from tasks.build import Stage, build
from tasks.pack import token_count
from tasks.runtime import Report, Runtime, Summary
from tasks.specs import PackStage

STAGE = Stage(fn="tasks.pack:pack", version=1, retries=0)


@pytest.fixture
def reports() -> list[Report]:
    return []


@pytest.fixture
def runtime(tmp_path: Path, reports: list[Report]) -> Runtime:
    return Runtime(lake=tmp_path / "lake", home=tmp_path / "home", run_id="run-1", sink=reports.append)


@pytest.fixture
def preprocessed(runtime: Runtime) -> PreprocessedRef:
    """Four samples of 55, 39, 53 and 55 tokens, and one that is held out."""
    table = {
        "split": pa.array([0, 0, 0, 0, 1], pa.int8()),
        "num_views": pa.array([2, 1, 2, 2, 2], pa.int8()),
        "text_tokens": pa.array([[1] * 6, [1] * 6, [1] * 4, [1] * 6, [1] * 6], pa.list_(pa.int32())),
    }
    lance.write_dataset(pa.table(table), str(runtime.lake / "made" / "samples.lance"))
    return PreprocessedRef(uri="made", fingerprint="p" * 16, num_samples=5, num_heldout=1, num_views=9)


def spec_of(tokens_per_row: int, state: str = "token") -> PackStage:
    policy = replace(RECIPE.policy, action_horizon=16, inputs=replace(RECIPE.policy.inputs, state=state))
    return PackStage(pack=PackSpec(tokens_per_row=tokens_per_row), policy=policy)


def test_training_samples_in_rows(runtime: Runtime, preprocessed: PreprocessedRef, reports: list[Report]) -> None:
    """55 + 55 and 53 + 39 in two rows of 110: 202 of 220 tokens."""
    ref = build(STAGE, spec_of(110), preprocessed, runtime=runtime).ref
    assert isinstance(ref, PackedRef)
    assert (ref.num_samples, ref.num_rows, ref.tokens_per_row, ref.fill_rate) == (4, 2, 110, 202 / 220)
    packing = Packing.load(runtime.path(ref.uri))
    assert sorted(sorted(row.tolist()) for row in packing.rows(0, 0, 2)) == [[0, 3], [1, 2]]
    assert json.loads((runtime.path(ref.uri) / "packed.json").read_text())["fill_by_row"] == [[1.0, 1], [0.836364, 1]]
    (summary,) = (report for report in reports if isinstance(report, Summary))
    assert summary.line == "4 samples → 2 rows · fill 91.8 %"


@pytest.mark.parametrize(
    ("state", "lengths"), [("token", [55, 53, 39]), ("none", [54, 52, 38]), ("text", [54, 52, 38])]
)
def test_a_state_token_counts(runtime: Runtime, preprocessed: PreprocessedRef, state: str, lengths: list[int]) -> None:
    ref = build(STAGE, spec_of(110, state), preprocessed, runtime=runtime).ref
    assert Packing.load(runtime.path(ref.uri)).lengths_C.tolist() == lengths


def test_a_row_that_is_too_short_is_refused(runtime: Runtime, preprocessed: PreprocessedRef) -> None:
    with pytest.raises(UserError, match="(?s)PACK-001.*sample 0: 55 tokens"):
        build(STAGE, spec_of(54), preprocessed, runtime=runtime)


def test_tokens_of_the_default_policy() -> None:
    """64 pixels in patches of 16: 4 x 4 tokens a view."""
    tokens = token_count(RECIPE.policy)
    assert (tokens.tokens_per_view, tokens.state_tokens, tokens.action_horizon) == (16, 1, 8)
