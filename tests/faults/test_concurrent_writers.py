"""Writers in processes of their own, killed at random: what was acknowledged is there once, and no half of anything."""

import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from data_lake.tables import open_table, read_manifest, versions
from tests.faults.appender import ROWS

WRITERS = 4


@dataclass(slots=True)
class History:
    """acknowledged: version by (writer, number). begun: numbers that a writer may have been at when it was killed."""

    acknowledged: dict[tuple[int, int], int] = field(default_factory=dict)
    begun: set[tuple[int, int]] = field(default_factory=set)


def start(root: Path, writer: int, first: int, last: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.faults.appender", str(root), str(writer), str(first), str(last)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])


def heard(process: subprocess.Popen[str], writer: int, first: int, history: History) -> int:
    """Wait for the end; take down what it acknowledged. The number that the writer goes on with."""
    said, _ = process.communicate(timeout=600)
    whole = [line.split() for line in said.splitlines(keepends=True) if line.endswith("\n")]
    history.acknowledged.update({(writer, int(number)): int(version) for number, version in whole})
    unknown = int(whole[-1][0]) + 1 if whole else first
    history.begun.add((writer, unknown))
    return unknown + 1


def run(root: Path, appends: int, kills: int, seed: int) -> History:
    """`appends` by each writer; `kills` times one of them is killed at some moment, and another takes its place."""
    history, chance = History(), random.Random(seed)
    firsts = dict.fromkeys(range(WRITERS), 0)
    alive = {writer: start(root, writer, 0, appends) for writer in firsts}
    for _ in range(kills):
        time.sleep(chance.uniform(0.3, 2.5))
        writer = chance.choice(sorted(alive))
        alive[writer].kill()
        firsts[writer] = heard(alive[writer], writer, firsts[writer], history)
        alive[writer] = start(root, writer, firsts[writer], appends)
    for writer, process in alive.items():
        heard(process, writer, firsts[writer], history)
        assert process.returncode == 0
    return history


def check(root: Path, history: History) -> None:
    manifest = read_manifest(root)
    assert manifest is not None
    rows = open_table(root, manifest, "frames").to_table().to_pydict()
    assert rows["index"] == list(range(manifest.num_frames))
    appends = list(zip(rows["writer"], rows["number"], strict=True))
    assert appends[::2] == appends[1::2], "both rows of an append, side by side"
    found = appends[::ROWS]
    assert len(found) == len(set(found)), "nothing twice"
    assert history.acknowledged.keys() <= set(found), "whatever was acknowledged is there"
    assert set(found) - history.acknowledged.keys() <= history.begun, "and beside it only what a killed writer was at"
    assert versions(root) == list(range(1, len(found) + 1))
    assert all(found[version - 1] == key for key, version in history.acknowledged.items()), "in the order of versions"


def test_writers_that_are_killed(tmp_path: Path) -> None:
    check(tmp_path, run(tmp_path, appends=5, kills=3, seed=1))


@pytest.mark.slow
def test_fifty_appends_by_each_of_four_writers(tmp_path: Path) -> None:
    check(tmp_path, run(tmp_path, appends=50, kills=20, seed=2))
