"""A worker's units: blocks that do not depend on their size, films that replay what happened."""

import dataclasses
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import torch

from model_core.policies.pi05.model import Pi05
from model_core.policies.policy import build_model
from model_core.quantize.export import write_export
from model_core.specs import EvaluateSpec
from tasks.workers.rollout_worker import _large, _side_by_side, begin
from tests.model_core.samples import SPEC, card_of, transform_of
from tests.model_core.sim.worlds import CORNER, SCENE, TASKS, TOP

SUITE = EvaluateSpec(
    suite="s",
    scene=replace(SCENE, max_steps=20),
    tasks=TASKS,
    episodes_per_task=3,
    first_seed=100_000,
    execution_horizon=3,
    denoise_steps=2,
    block_size=3,
    seed=4,
)


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy with random weights: what it does is senseless but depends on what it sees."""
    folder = tmp_path_factory.mktemp("export")
    torch.manual_seed(0)
    built = build_model(transform_of(), "sdpa_segments")
    for name, parameter in built.named_parameters():
        if "modulation" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    described = json.loads(json.dumps({"policy": asdict(SPEC), "card": card_of()}))
    write_export(folder, built.state_dict(), described, precision="none", is_language=Pi05.is_language, assets={})
    return folder


def episodes(export: Path, blocks: list[list[int]], **changes: Any) -> dict[int, dict[str, Any]]:
    settings = json.loads(json.dumps(dataclasses.asdict(replace(SUITE, **changes))))
    work = begin({"evaluate": settings, "export": str(export)})
    told = [work({"task": 0, "block": 0, "seeds": seeds}) for seeds in blocks]
    return {episode["seed"]: episode for result in told for episode in result["episodes"]}


def test_a_policy_does_the_same_in_any_block(export: Path) -> None:
    together = episodes(export, [[100_000, 100_001, 100_002]])
    assert np.abs(np.diff([e["executed"] for e in together.values()], axis=0)).max() > 0.01
    assert json.loads(json.dumps(together[100_000]))["steps"] == 20
    apart = episodes(export, [[100_002], [100_001, 100_000]], block_size=2)
    assert apart == together
    assert episodes(export, [[100_000]], seed=5)[100_000] != together[100_000]


def test_a_film_shows_the_recorded_episode(tmp_path: Path) -> None:
    settings = dataclasses.asdict(replace(SUITE, actor="random"))
    work = begin({"evaluate": json.loads(json.dumps(settings)), "export": None})
    episode = work({"task": 1, "block": 0, "seeds": [100_000]})["episodes"][0]
    unit = {"task": 1, "seed": 100_000, "actions": episode["executed"], "film": str(tmp_path / "a.mp4")}
    assert work(unit) == {"success": episode["success"], "steps": 20}
    with av.open(tmp_path / "a.mp4") as container:
        assert float(container.streams.video[0].average_rate) == 20.0
        assert sum(1 for _ in container.decode(video=0)) == 5 + 10


def test_large_views_keep_the_framing() -> None:
    top, corner = _large(SCENE).cameras
    assert (top.height, top.width, top.crop) == (512, 512, (16, 128, 256, 256))
    assert (corner.height, corner.width, corner.crop, corner.flip) == (256, 256, None, "vertical")
    big = replace(SCENE, cameras=(replace(TOP, crop=None, height=480, width=640), CORNER))
    assert _large(big).cameras[0].height == 480


def test_views_stand_side_by_side_in_even_sizes() -> None:
    row = _side_by_side({"a": np.zeros((65, 63, 3), np.uint8), "b": np.ones((70, 64, 3), np.uint8)})
    assert row.shape == (64, 126, 3)
