"""The card: statistics of training episodes only, of actions as they are learnt, and what the samples mean."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from data_lake.card import CHUNK_OFFSETS, HELD_OUT, TRAIN, make_card, statistics
from data_lake.steps import Steps, read_steps
from data_lake.view import read_view
from tests.data_lake.conftest import CodedLake
from tests.data_lake.lake_fixture import RECORDED, request_for, rows_of, write_view

SPLITS = [TRAIN] * 6 + [HELD_OUT]


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


def test_changes_count_at_every_offset_of_a_chunk(tmp_path: Path) -> None:
    """One episode of 20 steps; the action is the step's number, the state twice that: at offset h the change
    is (t + h) - 2 t for every t that has a step h ahead. The other dimension is taken as it is."""
    write_view(tmp_path, RECORDED[:1], {})
    view, length = read_view(tmp_path), 20
    count = np.arange(length, dtype=np.float32)
    steps = Steps(
        proprio_TP=np.stack([2 * count, 2 * count], axis=1), actions_TA=np.stack([count, count], axis=1),
        starts_E=np.array([0]),
    )  # fmt: skip
    view = replace(view, episodes=(replace(view.episodes[0], length=length),))
    stats = statistics(view, request_for(layout={"delta_mask": [True, False]}), steps, [TRAIN])
    changes = np.concatenate([count[h:] - 2 * count[: length - h] for h in range(CHUNK_OFFSETS)])
    assert stats["action"]["count"] == length
    np.testing.assert_allclose(stats["action"]["mean"], [changes.mean(), count.mean()])
    np.testing.assert_allclose(stats["action"]["q99"], [np.quantile(changes, 0.99), np.quantile(count, 0.99)])
    assert (stats["action"]["min"], stats["action"]["max"]) == ([-19, 0], [15, 19])


@pytest.mark.parametrize("declared", [{"colour_order": "bgr"}, {"image_orientation": "upside_down"}])
def test_samples_mean_upright_rgb_whatever_was_declared(
    coded: CodedLake, tmp_path: Path, declared: dict[str, str]
) -> None:
    write_view(tmp_path, RECORDED, coded.view.vector, **declared)
    view = read_view(tmp_path)
    card = make_card(view, request_for(), read_steps(view, coded.dataset), SPLITS, tmp_path)
    assert (card["meaning"]["colour_order"], card["meaning"]["image_orientation"]) == ("rgb", "upright")
    assert declared.items() <= card["declared"].items()
    assert (card["proprio_dim"], card["action_dim"], card["control_hz"]) == (4, 4, 80.0)


def test_a_tokenizer_file_is_copied_beside_the_card(coded: CodedLake, tmp_path: Path) -> None:
    (tmp_path / "somewhere.model").write_bytes(b"pieces")
    request = request_for(
        inputs={"sentencepiece_model": str(tmp_path / "somewhere.model")},
        functions=replace(request_for().functions, fit_tokenizer="tests.data_lake.test_card:file_tokenizer"),
    )
    make_card(coded.view, request, read_steps(coded.view, coded.dataset), SPLITS, tmp_path)
    assert (tmp_path / "tokenizer.model").read_bytes() == b"pieces"


def file_tokenizer(instructions: list[str], inputs: dict[str, object]) -> dict[str, str]:
    return {"kind": "sentencepiece", "file": "tokenizer.model"}
