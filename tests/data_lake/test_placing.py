"""Places of samples: numbers that count on over blocks, and tokens once per instruction."""

from pathlib import Path
from typing import Any

import pytest

from data_lake.blocks import blocks_of
from data_lake.fragments import placed_part, samples_schema
from data_lake.placing import Placing
from data_lake.preprocess import preprocess_view
from tests.data_lake.conftest import CodedLake
from tests.data_lake.lake_fixture import RECORDED, request_for

CARD = {"instructions": [episode.instruction for episode in RECORDED[:3]] + ["close the drawer"]}
calls: list[tuple[str, Any]] = []


def counted(instruction: str, proprio_P: Any, card: dict[str, Any], folder: Path) -> list[int]:
    calls.append((instruction, proprio_P))
    return [len(instruction), *([] if proprio_P is None else [round(float(proprio_P[0]))])]


def rows(coded: CodedLake, out: Path, state: str) -> list[dict[str, Any]]:
    calls.clear()
    functions = type(request_for().functions)(
        **dict.fromkeys(request_for().functions.__slots__, "tests.data_lake.test_placing:counted")
    )
    request = request_for(functions=functions, inputs={"state": state})
    placing = Placing(request, CARD, out, placed_part(samples_schema(["top"], 4)))
    return [row for block in blocks_of(coded.view, request, [0] * 6 + [1]) for row in placing.batch(block).to_pylist()]


@pytest.mark.parametrize("state", ["token", "text"])
def test_places_count_on_over_blocks(coded: CodedLake, tmp_path: Path, state: str) -> None:
    preprocess_view(coded.view, coded.dataset, request_for(), tmp_path)
    found, first = rows(coded, tmp_path, state), 0
    for number, episode in enumerate(RECORDED):
        for frame in range(0, episode.length, 2):
            row = found.pop(0)
            assert row == {
                "split": int(number == 6),
                "episode_index": number,
                "source_episode": 10 + number,
                "task_index": CARD["instructions"].index(episode.instruction),
                "first_step": first + frame,
                "text_tokens": [len(episode.instruction), *([1000 * number + frame] if state == "text" else [])],
            }
        first += episode.length
    assert not found
    assert len(calls) == (4 if state == "token" else 25)
