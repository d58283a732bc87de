"""Ingest that is killed at any step, and two at once: readers see all or nothing, each episode enters once."""

import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from data_lake.ingest import ingest_source
from data_lake.ingested import Ingested
from data_lake.tables import versions
from tests.data_lake.crashing_ingest import SPEC, STEPS
from tests.data_lake.recordings import (
    write_v2,
)
from tests.data_lake.seen import LENGTHS, content, ingest


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    return write_v2(tmp_path / "v2", LENGTHS)


def crash(source: Path, jobs: list[str]) -> list[str]:
    """Run the jobs; how each ended."""
    command = [sys.executable, "-m", "tests.data_lake.crashing_ingest", str(source), *jobs]
    root = Path(__file__).parents[2]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=240, check=True)
    return [line.split()[1] for line in ended.stdout.splitlines()]


@dataclass(frozen=True, kw_only=True, slots=True)
class Before:
    """A data set of two episodes, a source of three, and what readers see before and after."""

    root: Path
    source: Path
    old: dict[str, Any]
    new: dict[str, Any]

    def copies(self, count: int) -> list[Path]:
        return [Path(shutil.copytree(self.root, self.root.parent / f"copy{number}")) for number in range(count)]


@pytest.fixture
def before(tmp_path: Path) -> Before:
    short, whole = write_v2(tmp_path / "short", LENGTHS[:2]), write_v2(tmp_path / "whole", LENGTHS)
    ingest(short, tmp_path / "started")
    old = content(tmp_path / "started")
    shutil.copytree(tmp_path / "started", tmp_path / "undisturbed")
    ingest(whole, tmp_path / "undisturbed")
    return Before(root=tmp_path / "started", source=whole, old=old, new=content(tmp_path / "undisturbed"))


def test_a_crash_at_any_step_shows_all_or_nothing(before: Before) -> None:
    """SIGKILL before and after each write and commit; the same command then ends where no crash would have."""
    copies = before.copies(2 * STEPS)
    ends = crash(before.source, [f"{copy}:{step}" for step, copy in enumerate(copies, start=1)])
    assert ends == ["killed"] * (2 * STEPS)
    for step, copy in enumerate(copies, start=1):
        is_done = step == 2 * STEPS  # killed after the manifest was put
        assert content(copy) == (before.new if is_done else before.old), step
        assert ingest(before.source, copy).num_new == (0 if is_done else 1)
        assert content(copy) == before.new and versions(copy) == [1, 2], step


@pytest.mark.slow
def test_a_crash_at_any_moment_shows_all_or_nothing(before: Before) -> None:
    """SIGKILL from outside, 40 moments over the time that an ingest takes."""
    copies = before.copies(40)
    crash(before.source, [f"{copy}:{0.01 * number:.3f}" for number, copy in enumerate(copies)])
    for copy in copies:
        assert content(copy) in (before.old, before.new)
        ingest(before.source, copy)
        assert content(copy) == before.new and versions(copy) == [1, 2]


def test_two_at_once_put_each_episode_in_once(v2: Path, tmp_path: Path) -> None:
    """Both read the same base; the one that comes second reads again and finds its episodes there."""
    other = write_v2(tmp_path / "other", (5, 6))
    root, barrier = tmp_path / "cart", threading.Barrier(2)
    done: dict[str, Ingested] = {}

    def work(name: str, source: Path) -> None:
        met: list[bool] = []

        def meet(number: int, total: int, _figures: dict[str, float]) -> None:
            if number == total and not met:
                met.append(True)
                barrier.wait(timeout=60)

        out = tmp_path / f"out-{name}"
        done[name] = ingest_source(source, SPEC, dataset_root=root, out_dir=out, on_progress=meet)

    for pair in ([("a", v2), ("b", v2)], [("c", other), ("d", v2)]):
        threads = [threading.Thread(target=work, args=each) for each in pair]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted((done["a"].num_new, done["b"].num_new)) == [0, 3]
    assert done["a"].view["episodes"] == done["b"].view["episodes"]
    assert (done["c"].num_new, done["d"].num_new) == (2, 0)
    seen = content(root)
    assert seen["frames"]["index"] == list(range(41))
    keys = list(zip(seen["episodes"]["source_episode"], seen["episodes"]["content_hash"], strict=True))
    assert len(keys) == len(set(keys)) == 5
