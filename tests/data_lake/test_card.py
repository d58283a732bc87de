"""The card: what the samples mean, and what serving must know of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from data_lake.card import make_card
from data_lake.request import HELD_OUT, TRAIN
from data_lake.view import read_view
from tests.data_lake.conftest import CodedLake
from tests.data_lake.lake_fixture import RECORDED, request_for, write_view

SPLITS = [TRAIN] * 6 + [HELD_OUT]
STATS = {"proprio": {"mean": [0.0] * 4}, "action": {"mean": [0.0] * 3}}


@pytest.mark.parametrize("declared", [{"colour_order": "bgr"}, {"image_orientation": "upside_down"}])
def test_samples_mean_upright_rgb_whatever_was_declared(
    coded: CodedLake, tmp_path: Path, declared: dict[str, str]
) -> None:
    write_view(tmp_path, RECORDED, coded.view.vector, **declared)
    view = read_view(tmp_path)
    card = make_card(view, request_for(), STATS, SPLITS, tmp_path)
    assert (card["meaning"]["colour_order"], card["meaning"]["image_orientation"]) == ("rgb", "upright")
    assert declared.items() <= card["declared"].items()
    assert (card["proprio_dim"], card["action_dim"], card["control_hz"]) == (4, 3, 80.0)


def test_a_tokenizer_file_is_copied_beside_the_card(coded: CodedLake, tmp_path: Path) -> None:
    (tmp_path / "somewhere.model").write_bytes(b"pieces")
    request = request_for(
        inputs={"sentencepiece_model": str(tmp_path / "somewhere.model")},
        functions=replace(request_for().functions, fit_tokenizer="tests.data_lake.test_card:file_tokenizer"),
    )
    make_card(coded.view, request, STATS, SPLITS, tmp_path)
    assert (tmp_path / "tokenizer.model").read_bytes() == b"pieces"


def file_tokenizer(instructions: list[str], inputs: dict[str, object]) -> dict[str, str]:
    return {"kind": "sentencepiece", "file": "tokenizer.model"}
