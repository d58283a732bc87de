"""Open loop: errors by head, baselines, what counts and what does not."""

import json
from collections.abc import Sequence
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from data_lake.fragments import samples_schema
from data_lake.samples import SampleTable
from errors import UserError
from model_core.embodiments import METAWORLD_SAWYER, layout_of
from model_core.specs import EvaluateSpec
from model_core.types import Observation
from tasks.offline import OpenLoop, training_actions

SUITE = EvaluateSpec(
    suite="held out",
    scene=None,
    tasks=(),
    episodes_per_task=0,
    first_seed=0,
    execution_horizon=2,
    denoise_steps=3,
    block_size=3,
    seed=0,
)
HORIZON = 2
# two training episodes of two steps, one held-out episode of two; dims 2 and 3 never vary in training
ACTIONS = np.array([[0, 0, 1, 5], [2, 4, 1, 5], [0, 0, 1, 5], [2, 4, 1, 5], [3, 2, 9, 5], [1, 2, 9, 5]], np.float32)
PROPRIO = np.array([[0, 0, 0, 0]] * 4 + [[3, 0, 0, 0], [2, 0, 0, 0]], np.float32)


class Fixed:
    """A policy that always says the same; notes what it was given."""

    action_shape = (HORIZON, 4)

    def __init__(self, action: Sequence[float]) -> None:
        self.action = np.array(action, np.float32)
        self.seen: list[Observation] = []
        self.noise: list[np.ndarray] = []

    def act(self, observations: list[Observation], noise_BHA: np.ndarray, denoise_steps: int) -> np.ndarray:
        self.seen += observations
        self.noise.append(noise_BHA)
        assert denoise_steps == 3
        return np.broadcast_to(self.action, noise_BHA.shape)


def table(folder: Path, *, heldout: int = 1, action_from_state: tuple[int, ...] = (0, -1, -1, -1)) -> SampleTable:
    episodes = np.repeat([0, 1, 2], 2)
    columns = {
        "split": (episodes >= 3 - heldout).astype(np.int8),
        "episode_index": episodes,
        "source_episode": episodes,
        "frame_index": np.tile([0, 1], 3),
        "task_index": episodes % 2,
        "first_step": np.arange(6),
        "num_steps": np.tile([2, 1], 3),
        "proprio": PROPRIO.tolist(),
        "text_tokens": [[1]] * 6,
        "num_views": [1, 1, 1, 1, 2, 1],
        "view_top": [bytes([10 * i] * 12) for i in range(6)],
        "view_corner": [bytes([7] * 12) if i == 4 else None for i in range(6)],
    }
    schema = samples_schema(["top", "corner"], 4)
    rows = pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)
    lance.write_dataset(rows, str(folder / "samples.lance"))
    lists = pa.FixedSizeListArray.from_arrays(pa.array(ACTIONS.ravel()), 4)
    lance.write_dataset(pa.table({"action": lists}), str(folder / "steps.lance"))
    layout = layout_of(METAWORLD_SAWYER) | {"action_from_state": list(action_from_state)}
    card = {
        "inputs": {"views": ["top", "corner"], "image_size": 2},
        "embodiment_layout": layout,
        "instructions": ["open", "close"],
        "action_dim": 4,
    }
    (folder / "card.json").write_text(json.dumps(card))
    return SampleTable(folder)


def test_training_actions_are_each_step_once(tmp_path: Path) -> None:
    assert np.array_equal(training_actions(table(tmp_path)), ACTIONS[:4])


def test_errors_by_head(tmp_path: Path) -> None:
    """Training mean (1, 2), deviation (1, 2). Held-out chunks: (3,2),(1,2) and (1,2) with nothing after it."""
    policy = Fixed([3, 2, 0, 0])
    errors = OpenLoop(table(tmp_path), policy, SUITE)
    assert errors.varies_A.tolist() == [True, True, False, False]
    assert errors.num_episodes == 1
    assert list(errors.run()) == [2]
    means = errors.means()
    # policy: |0|,|2|,|2| on dim 0, nothing on dim 1: mean over two dims 0, 1, 1
    assert means["policy"] == pytest.approx(2 / 3)
    # mean action (1, 2): 2, 0, 0 on dim 0
    assert means["mean action"] == pytest.approx(1 / 3)
    # current state: dim 0 is proprio 0 (3, then 2): 0, 2, 1; dim 1 has no state: its mean, 2
    assert means["current state"] == pytest.approx((0 + 1 + 0.5) / 3)
    assert errors.by_step()["policy"] == pytest.approx([0.5, 1.0])


def test_observations_are_those_of_the_held_out_samples(tmp_path: Path) -> None:
    policy = Fixed([0, 0, 0, 0])
    assert list(OpenLoop(table(tmp_path), policy, SUITE).run()) == [2]
    assert len(policy.seen) == 3  # the block is filled up
    first, second, filled = policy.seen
    assert sorted(first.views) == ["corner", "top"]
    assert list(second.views) == ["top"]
    assert first.views["top"].tolist() == np.full((2, 2, 3), 40).tolist()
    assert (first.instruction, first.proprio.tolist()) == ("open", [3, 0, 0, 0])
    assert filled.views["top"].tolist() == first.views["top"].tolist()
    assert not np.array_equal(policy.noise[0][0], policy.noise[0][1])


def test_nothing_held_out_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="EVAL-004"):
        OpenLoop(table(tmp_path, heldout=0), Fixed([0, 0, 0, 0]), SUITE)
