"""A unit of collecting leaves one complete episode."""

import dataclasses
import json
from pathlib import Path

from tasks.recorder import read_episode
from tasks.workers.collect_worker import begin
from tests.model_core.sim.worlds import COLLECT, TASKS


def test_a_unit_is_an_episode_in_its_folder(tmp_path: Path) -> None:
    work = begin({"collect": json.loads(json.dumps(dataclasses.asdict(COLLECT)))})
    told = work({"task": 1, "seed": 5, "views": ["corner"], "folder": str(tmp_path / "1-5")})
    assert (told["seed"], told["success"]) == (5, True)
    episode = read_episode(tmp_path / "1-5")
    assert episode is not None
    assert (episode.steps, list(episode.videos)) == (told["steps"], ["corner"])
    assert list(episode.simulator["assets"]) == [TASKS[1].name]
