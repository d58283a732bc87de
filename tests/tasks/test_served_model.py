"""The served policy: columns in, chunks out, whatever batch a row comes in."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from errors import UserError
from model_core.policies.policy import Policy, build_model
from model_core.transforms import InputTransform
from tasks.served_model import ServedPolicy
from tests.model_core.samples import SPEC, card_of


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> ServedPolicy:
    torch.manual_seed(0)
    folder: Path = tmp_path_factory.mktemp("policy")
    transform = InputTransform(card_of(), SPEC, folder)
    return ServedPolicy(Policy(build_model(transform, "sdpa_segments").eval(), transform))


def columns(num: int, *views: str) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    images = {f"view.{view}": rng.integers(0, 256, (num, 20, 30, 3)).astype(np.uint8) for view in views}
    sentences = np.array(["open the drawer", "press the button from the top"] * num)[:num]
    return {**images, "proprio": rng.normal(size=(num, 4)).astype(np.float32), "instruction": sentences}


def test_a_row_gets_a_chunk(served: ServedPolicy) -> None:
    chunk = served.predict(columns(3, "top", "corner"))
    assert (chunk.shape, chunk.dtype) == ((3, SPEC.action_horizon, 4), np.float32)
    assert np.isfinite(chunk).all()


def test_an_answer_does_not_depend_on_its_batch(served: ServedPolicy) -> None:
    seen = columns(3, "top", "corner")
    alone = served.predict({name: column[2:] for name, column in seen.items()})
    np.testing.assert_array_equal(served.predict(seen)[2:], alone)


def test_a_view_may_be_absent(served: ServedPolicy) -> None:
    assert served.predict(columns(1, "top")).shape == (1, SPEC.action_horizon, 4)


def test_the_seed_chooses_the_noise(served: ServedPolicy) -> None:
    seen = columns(1, "top", "corner")
    same, other = served.predict(seen, {"seed": 0}), served.predict(seen, {"seed": 1})
    np.testing.assert_array_equal(served.predict(seen), same)
    assert not np.array_equal(same, other)


@pytest.mark.parametrize(
    ("changes", "params"),
    [
        ({}, {"denoise_steps": 0}),
        ({}, {"denoise_steps": -1}),
        ({}, {"seed": -1}),
        ({"proprio": np.zeros((3, 4), np.float32)}, {}),
        ({"view.top": np.zeros((1, 8, 8, 3), np.uint8)}, {}),
        ({"instruction": np.array([], str), "proprio": np.zeros((0, 4))}, {}),
    ],
)
def test_half_an_observation_moves_nothing(
    served: ServedPolicy, changes: dict[str, Any], params: dict[str, Any]
) -> None:
    with pytest.raises(UserError, match="SERVE-001"):
        served.predict(columns(2, "top", "corner") | changes, params)


def test_an_empty_batch_or_a_missing_column_is_named(served: ServedPolicy) -> None:
    with pytest.raises(UserError, match="SERVE-001.*at least one"):
        served.predict(columns(0, "top"))
    with pytest.raises(UserError, match="SERVE-001.*'proprio'"):
        served.predict({"instruction": np.array(["x"])})
