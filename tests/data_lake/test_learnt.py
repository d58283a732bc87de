"""Statistics of what is learnt: of training rows alone, exact while few, and beyond within the sketch's error."""

import json
from pathlib import Path

import numpy as np
import pytest

from data_lake.learnt import CHUNK_OFFSETS, is_small, learnt_of, statistics_json
from data_lake.request import HELD_OUT, TRAIN, Request
from data_lake.sketches import Summary
from data_lake.steps import Steps
from errors import UserError
from tests.data_lake.conftest import CodedLake
from tests.data_lake.lake_fixture import RECORDED, request_for, rows_of


def statistics(steps: list[Steps], request: Request, splits: list[int], *, exact: bool = True) -> dict:
    rows = learnt_of(steps, splits, request)
    summaries = {name: Summary.of(pieces) for name, pieces in rows.items()}
    return statistics_json(summaries, rows if exact else None, request.layout)


def test_statistics_are_those_of_training_rows(coded: CodedLake) -> None:
    stats = json.loads((coded.out / "card.json").read_text())["stats"]
    proprio = np.concatenate([rows_of(e, RECORDED[e].length)[0] for e in range(6)]).astype(np.float64)
    assert stats["proprio"]["count"] == stats["action"]["count"] == 39
    for name, expected in (
        ("mean", proprio.mean(axis=0)),
        ("std", proprio.std(axis=0)),
        ("q01", np.quantile(proprio, 0.01, axis=0)),
        ("q99", np.quantile(proprio, 0.99, axis=0)),
        ("max", proprio.max(axis=0)),
    ):
        np.testing.assert_allclose(stats["proprio"][name], expected)
    np.testing.assert_allclose(stats["action"]["mean"], -proprio.mean(axis=0))


def test_changes_count_at_every_offset_of_a_chunk() -> None:
    """One episode of 20 steps; the action is the step's number, the state twice that: at offset h the change
    is (t + h) - 2 t for every t that has a step h ahead. The other dimension is taken as it is."""
    length = 20
    count = np.arange(length, dtype=np.float32)
    steps = Steps(proprio_TP=np.stack([2 * count, 2 * count], axis=1), actions_TA=np.stack([count, count], axis=1))
    stats = statistics([steps], request_for(layout={"delta_mask": [True, False]}), [TRAIN])
    changes = np.concatenate([count[h:] - 2 * count[: length - h] for h in range(CHUNK_OFFSETS)])
    assert stats["action"]["count"] == length
    np.testing.assert_allclose(stats["action"]["mean"], [changes.mean(), count.mean()])
    np.testing.assert_allclose(stats["action"]["q99"], [np.quantile(changes, 0.99), np.quantile(count, 0.99)])
    assert (stats["action"]["min"], stats["action"]["max"]) == ([-19, 0], [15, 19])


@pytest.mark.parametrize("exact", [True, False])
def test_held_out_rows_do_not_count(exact: bool) -> None:
    near, far = (np.full((9, 4), value, np.float32) for value in (1.0, 1e6))
    steps = [Steps(proprio_TP=rows, actions_TA=rows) for rows in (near, far)]
    stats = statistics(steps, request_for(), [TRAIN, HELD_OUT], exact=exact)
    assert (stats["action"]["q99"], stats["action"]["max"], stats["action"]["count"]) == ([1.0] * 4, [1.0] * 4, 9)


def test_many_rows_are_answered_by_sketches(coded: CodedLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from data_lake.preprocess import preprocess_view

    monkeypatch.setattr("data_lake.learnt.EXACT_NUMBERS", 0)
    preprocess_view(coded.view, coded.dataset, request_for(heldout_episodes=(16,)), tmp_path)
    found, exact = (json.loads((folder / "card.json").read_text())["stats"] for folder in (tmp_path, coded.out))
    for name in ("mean", "std", "min", "max"):
        np.testing.assert_allclose(found["action"][name], exact["action"][name])
    assert found["action"]["count"] == exact["action"]["count"]
    assert found["action"]["q99"] != exact["action"]["q99"]
    np.testing.assert_allclose(found["action"]["q01"], exact["action"]["q01"], rtol=0.01)


def test_few_rows_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    summaries = {"action": Summary.of([np.zeros((5, 2))])}
    for limit, expected in ((10, True), (9, False)):
        monkeypatch.setattr("data_lake.learnt.EXACT_NUMBERS", limit)
        assert is_small(summaries) == expected


@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name", ["proprio", "action"])
def test_statistics_that_are_not_finite_are_never_given(name: str, value: float, exact: bool) -> None:
    rows = {each: np.zeros((9, 4), np.float32) for each in ("proprio", "action")}
    rows[name][5, 2] = value
    steps = [Steps(proprio_TP=rows["proprio"], actions_TA=rows["action"])]
    with pytest.raises(UserError, match=rf"{name}\[2\]") as refused:
        statistics(steps, request_for(), [TRAIN], exact=exact)
    assert refused.value.code == "LAKE-232"
    sound = Steps(proprio_TP=np.zeros((9, 4), np.float32), actions_TA=np.zeros((9, 4), np.float32))
    assert statistics([sound, *steps], request_for(), [TRAIN, HELD_OUT], exact=exact)[name]["max"] == [0.0] * 4
