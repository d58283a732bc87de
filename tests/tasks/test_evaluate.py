"""Closed loop from end to end with chance as the actor; what a suite must not do."""

import dataclasses
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from data_lake.refs import EvalReport, ExportRef, PreprocessedRef
from errors import UserError
from model_core.specs import EvaluateSpec
from tasks.evaluate import check_suite, evaluate
from tasks.specs import EvaluateStage
from tests.model_core.sim.worlds import SCENE, TASKS
from tests.tasks.slots import Desk

SPEC = EvaluateSpec(
    suite="chance",
    scene=replace(SCENE, max_steps=24),
    tasks=TASKS,
    episodes_per_task=3,
    first_seed=100_000,
    execution_horizon=8,
    denoise_steps=5,
    block_size=2,
    seed=0,
    num_videos=1,
    actor="random",
)
EXPORT = ExportRef(
    uri="e", fingerprint="e", precision="none", num_bytes=0, action_error=0, language_saving=0, total_saving=0
)
SAMPLES = PreprocessedRef(uri="samples", fingerprint="p", num_samples=0, num_heldout=0, num_views=2)


def run(desk: Desk, workers: int) -> EvalReport:
    (desk.lake / "samples").mkdir(exist_ok=True)
    (desk.lake / "samples/card.json").write_text(json.dumps({"meaning": {}}))
    return evaluate(EvaluateStage(evaluate=SPEC), EXPORT, SAMPLES, out=desk, runtime=desk.runtime(workers))


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Desk, EvalReport]:
    desk = Desk(tmp_path_factory.mktemp("lake"), "evaluate")
    return desk, run(desk, 2)


def report_of(desk: Desk) -> dict[str, Any]:
    return json.loads((desk.path / "report.json").read_text())


def test_chance_achieves_nothing(evaluated: tuple[Desk, EvalReport]) -> None:
    _, ref = evaluated
    assert (ref.score, ref.num_episodes, ref.suite) == (0.0, 6, "chance")
    assert [(task.task, task.k, task.n) for task in ref.tasks] == [(task.name, 0, 3) for task in TASKS]
    assert ref.tasks[0].high == pytest.approx(0.5615, abs=1e-3)
    assert ref.simulator.startswith("metaworld 3.1.1 · ")
    assert (ref.error, ref.baselines) == (None, ())


def test_the_report_has_every_episode_and_the_protocol(evaluated: tuple[Desk, EvalReport]) -> None:
    report = report_of(evaluated[0])
    assert [(e["task"], e["seed"]) for e in report["episodes"]] == [
        (task.name, seed) for task in TASKS for seed in (100_000, 100_001, 100_002)
    ]
    assert [e["other_goal"] for e in report["episodes"]] == [None] * 3 + [False] * 3
    assert [task["other_goal"] for task in report["tasks"]] == [None, 0]
    assert report["protocol"]["seeds"] == [100_000, 3]
    assert (report["protocol"]["scene"]["max_steps"], report["protocol"]["denoise_steps"]) == (24, 5)
    assert report["simulator"]["versions"]["metaworld"] == "3.1.1"
    assert report["mean_seconds"] == pytest.approx(24 / 80)
    actions = np.load(evaluated[0].path / "actions.npy")
    assert actions.shape == (6 * 24, 4)
    assert [e["first_step"] for e in report["episodes"]] == [0, 24, 48, 72, 96, 120]


def test_failures_are_filmed_for_browsers(evaluated: tuple[Desk, EvalReport]) -> None:
    desk = evaluated[0]
    (video,) = report_of(desk)["videos"]
    assert video == "videos/failure-button-press-topdown-v3-0-100000.mp4"
    with av.open(desk.path / video) as container:
        pictures = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert pictures[0].shape == (256, 512, 3)
    assert len(pictures) == 24 // 4 + 10
    assert not any("replay_differs" in episode for episode in report_of(desk)["episodes"])
    assert not (desk.path / "blocks").exists()


def test_the_outcome_does_not_depend_on_workers_or_interruption(
    evaluated: tuple[Desk, EvalReport], tmp_path: Path
) -> None:
    broken = Desk(tmp_path, "evaluate", fail_at_check=3)
    with pytest.raises(InterruptedError):
        run(broken, 1)
    again = Desk(tmp_path, "evaluate", number=2)
    run(again, 1)
    assert again.num_checks == 3  # two of four blocks were there; two blocks and a film were left
    assert report_of(again) == report_of(evaluated[0])
    assert (again.path / "actions.npy").read_bytes() == (evaluated[0].path / "actions.npy").read_bytes()


def meaning(**changes: Any) -> dict[str, Any]:
    scene = json.loads(json.dumps(dataclasses.asdict(SPEC.scene)))  # type: ignore[arg-type]
    return {"scene": scene | changes, "seeds": {"open": [0, 1, 2]}}


def test_a_suite_like_the_demonstrations_passes() -> None:
    check_suite(SPEC, meaning())
    check_suite(SPEC, meaning(max_steps=500, render_every=1))  # no pixel depends on these
    check_suite(SPEC, {})


@pytest.mark.parametrize("name", ["shadows", "antialiasing", "show_goal_sites", "cameras"])
def test_another_picture_is_refused(name: str) -> None:
    scene = meaning()["scene"]
    other = {"shadows": True, "antialiasing": 4, "show_goal_sites": True, "cameras": scene["cameras"][:1]}[name]
    with pytest.raises(UserError, match="EVAL-001") as raised:
        check_suite(SPEC, meaning(**{name: other}))
    assert name in raised.value.where


def test_a_flipped_camera_is_refused() -> None:
    cameras = meaning()["scene"]["cameras"]
    cameras[1]["flip"] = "none"
    with pytest.raises(UserError, match="EVAL-001"):
        check_suite(SPEC, meaning(cameras=cameras))


def test_demonstrated_seeds_are_refused() -> None:
    with pytest.raises(UserError, match="EVAL-002") as raised:
        check_suite(replace(SPEC, first_seed=2), meaning())
    assert "beyond 2" in raised.value.next_step
    check_suite(replace(SPEC, first_seed=3), meaning())


def test_an_empty_suite_is_refused() -> None:
    with pytest.raises(UserError, match="EVAL-003"):
        check_suite(replace(SPEC, tasks=()), {})
