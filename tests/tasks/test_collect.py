"""Demonstrations from end to end: the same whatever the number of workers and however often it stopped."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pyarrow.parquet as pq
import pytest

from errors import UserError
from model_core.sim import open_expert, open_simulator
from model_core.sim.actors import NoisyExpert
from model_core.sim.rollout import Frame, rollout
from tasks.collect import _Plan, collect
from tasks.runtime import Progress, Summary
from tasks.specs import CollectStage
from tests.model_core.sim.worlds import COLLECT, TASKS
from tests.tasks.slots import Desk

SPEC = replace(COLLECT, one_view_every=2)


def files(folder: Path) -> dict[str, str]:
    """Digest of every file."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    desk = Desk(tmp_path_factory.mktemp("lake"), "collect")
    ref = collect(CollectStage(collect=SPEC), out=desk, runtime=desk.runtime(2))
    assert (ref.uri, ref.num_episodes) == ("collect/f/attempts/1/episodes", 4)
    return desk


def test_one_worker_that_stopped_halfway_gives_the_same_files(collected: Desk, tmp_path: Path) -> None:
    broken = Desk(tmp_path, "collect", fail_at_check=3)
    with pytest.raises(InterruptedError):
        collect(CollectStage(collect=SPEC), out=broken, runtime=broken.runtime(1))
    again = Desk(tmp_path, "collect", number=2)
    collect(CollectStage(collect=SPEC), out=again, runtime=again.runtime(1))
    assert again.num_checks == 1  # of four episodes three were there
    assert files(again.path) == files(collected.path)


def test_what_is_written(collected: Desk) -> None:
    root = collected.path / "episodes"
    told = json.loads((root / "meta/info.json").read_text())
    assert told["fps"] == 80
    declared = told["vlaloop"]
    assert (declared["embodiment"], declared["render_every"]) == ("metaworld_sawyer", 4)
    assert declared["scene"]["cameras"][0]["crop"] == [4, 32, 64, 64]
    assert declared["simulator"]["versions"]["mujoco"] == "3.3.0"
    assert set(declared["simulator"]["assets"]) == {task.name for task in TASKS}
    assert declared["seeds"] == {task.instruction: [0, 1] for task in TASKS}
    lines = pq.read_table(root / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    assert [line["videos/observation.images.corner/file_index"] for line in lines] == [0, None, 1, None]
    assert [line["seed"] for line in lines] == [0, 1, 0, 1]
    assert not (collected.path / "pieces").exists()


def test_rows_hold_clean_and_executed_actions(collected: Desk) -> None:
    table = pq.read_table(collected.path / "episodes/data/chunk-000/file-000.parquet")
    clean, executed = np.array(table["action"].to_pylist()), np.array(table["action.executed"].to_pylist())
    assert np.abs(clean).max() <= 1
    assert np.abs(executed).max() <= 1
    assert np.array_equal(clean[:, 3], executed[:, 3])
    assert 0.05 < np.abs(clean - executed)[:, :3].mean() < 0.5
    ends = np.flatnonzero(np.diff(table["episode_index"].to_numpy(), append=-1))
    assert np.array_equal(np.flatnonzero(table["next.success"].to_numpy()), ends)  # episodes stop at success


def test_decoded_equals_rendered(collected: Desk) -> None:
    """The pixels on disk are the simulator's, held between rendered frames, row by row."""
    frames: list[Frame] = []
    world = open_simulator(SPEC.scene)
    rollout(
        world,
        NoisyExpert(open_expert("metaworld", TASKS[1].name), SPEC),
        task=TASKS[1].name,
        instruction="",
        seeds=[0],
        block_size=1,
        max_steps=200,
        render_every=4,
        recorder=frames.append,
    )
    world.close()
    table = pq.read_table(collected.path / "episodes/data/chunk-000/file-000.parquet")
    rows = table.filter(np.equal(table["episode_index"].to_numpy(), 2))
    assert np.array_equal(np.array(rows["observation.state"].to_pylist(), np.float32), [f.proprio for f in frames])
    assert np.array_equal(np.array(rows["action"].to_pylist(), np.float32), [f.label for f in frames])
    for view, file in (("top", 2), ("corner", 1)):
        path = f"episodes/videos/observation.images.{view}/chunk-000/file-{file:03d}.mp4"
        with av.open(collected.path / path) as container:
            decoded = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
        rendered = [frame.views[view] for frame in frames if frame.views is not None]
        assert np.array_equal(decoded, np.repeat(rendered, 4, axis=0)[: len(frames)])


def test_progress_and_summary(collected: Desk) -> None:
    progress = [report for report in collected.reports if isinstance(report, Progress)]
    assert [(each.done, each.total) for each in progress] == [(n, 4) for n in (1, 2, 3, 4)]
    (summary,) = [report for report in collected.reports if isinstance(report, Summary)]
    assert summary.line.startswith("4 episodes · 2 tasks · 2 cameras 64×64 · ")
    assert [row["kept"] for row in summary.table] == [2, 2]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 2, 0], [2, 3, 0, 1]])
def test_the_first_successes_are_kept_whoever_is_first(tmp_path: Path, order: list[int]) -> None:
    """Seeds 1 and 2 fail; two successes are wanted: 0 and 3, in any order of finishing."""
    plan = _Plan(replace(COLLECT, tasks=TASKS[:1]), tmp_path)
    flying = [plan.pick(None), plan.pick(None)]
    assert plan.pick(None) is None  # no more in flight than are missing
    tried = []
    while any(flying):
        units = [unit for unit in flying if unit]
        unit = min(units, key=lambda unit: order.index(unit["seed"]))
        flying.remove(unit)
        tried.append(unit["seed"])
        plan.finish(unit, success=unit["seed"] in (0, 3))
        flying.append(plan.pick(unit))
    assert sorted(tried) == [0, 1, 2, 3]
    assert plan.num_kept == 2
    assert plan.num_tries(0) == 4


def test_a_worker_stays_with_its_task_while_that_needs_some(tmp_path: Path) -> None:
    plan = _Plan(COLLECT, tmp_path)
    first, second = plan.pick(None), plan.pick(None)
    assert first is not None
    assert second is not None
    assert (first["task"], second["task"]) == (0, 1)
    third = plan.pick(first)
    assert third is not None
    assert (third["task"], third["seed"]) == (0, 1)


def test_an_expert_that_mostly_fails_is_told(tmp_path: Path) -> None:
    plan = _Plan(replace(COLLECT, episodes_per_task=50), tmp_path)
    with pytest.raises(UserError, match="COLLECT-001"):
        for number in range(40):
            unit = plan.pick({"task": 0})
            assert unit is not None
            plan.finish(unit, success=number % 3 == 0)
