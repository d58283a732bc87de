"""Ingest with every call that changes a file failing once: killed there, or the disk full, broken or read-only.

The calls are counted in an undisturbed run, so that each is tried: none is named by hand.
"""

import errno
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from data_lake.doctor import doctor
from data_lake.tables import versions
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import LENGTHS, content, ingest

SAMPLED = 24  # of the calls, where not all are tried


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """how: `killed`, or the exit code. calls: that changed files."""

    how: str
    calls: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Before:
    """A data set of two episodes, a source of three, and what readers see before and after."""

    shim: Path
    root: Path
    source: Path
    old: dict[str, Any]
    new: dict[str, Any]

    def ingests(self, faults: Sequence[tuple[int, int]]) -> Iterator[tuple[Path, Ended, str]]:
        """A copy of the data set for each (call, errno), how the ingest into it ended, and what all of them said."""
        folder = Path(tempfile.mkdtemp(dir=self.root.parent))
        copies = [folder / f"copy{number}" for number in range(len(faults))]
        for copy in copies:
            shutil.copytree(self.root, copy)
        jobs = [f"{copy}:{call}:{error}" for copy, (call, error) in zip(copies, faults, strict=True)]
        command = [sys.executable, "-m", "tests.faults.faulty_ingest", str(self.source), *jobs]
        done = subprocess.run(
            command,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "LD_PRELOAD": str(self.shim)},
            capture_output=True,
            text=True,
            timeout=3000,
            check=True,
        )
        for copy, line in zip(copies, done.stdout.splitlines(), strict=True):
            _, how, calls = line.split()
            yield copy, Ended(how=how, calls=int(calls)), done.stderr


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Before:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler to make the shim with")
    folder = tmp_path_factory.mktemp("faults")
    shim = folder / "shim.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O2", "-o", shim, Path(__file__).with_name("shim.c"), "-ldl"], check=True
    )
    short, whole = write_v2(folder / "short", LENGTHS[:2]), write_v2(folder / "whole", LENGTHS)
    ingest(short, folder / "started")
    old = content(folder / "started")
    shutil.copytree(folder / "started", folder / "undisturbed")
    ingest(whole, folder / "undisturbed")
    return Before(shim=shim, root=folder / "started", source=whole, old=old, new=content(folder / "undisturbed"))


def num_calls(before: Before) -> int:
    """How many calls of an undisturbed ingest change files."""
    [(copy, ended, _)] = before.ingests([(0, 0)])
    assert ended.how == "0" and content(copy) == before.new
    assert ended.calls > SAMPLED, "the shim sees what an ingest does"
    return ended.calls


def ends_whole(before: Before, copy: Path) -> None:
    """Readers see the old version or the new one; the same command then ends where no fault would have."""
    assert content(copy) in (before.old, before.new)
    ingest(before.source, copy)
    assert content(copy) == before.new and versions(copy) == [1, 2]
    assert not [found for found in doctor(str(copy))["findings"] if found["severity"] == "error"]


def test_killed_at_a_sample_of_all_calls(before: Before) -> None:
    total = num_calls(before)
    chosen = sorted(random.Random(7).sample(range(1, total + 1), SAMPLED))
    ends_whole_when_killed(before, chosen)


@pytest.mark.slow
def test_killed_at_every_call(before: Before) -> None:
    total = num_calls(before)
    print(f"{total} calls that change files")
    ends_whole_when_killed(before, range(1, total + 1))


def ends_whole_when_killed(before: Before, calls: Sequence[int]) -> None:
    for call, (copy, ended, _) in zip(calls, before.ingests([(call, 0) for call in calls]), strict=True):
        # threads take turns: a run may make a few calls less, and then its last ones are never reached
        assert ended.how == "killed" or (ended.how == "0" and ended.calls < call), copy
        ends_whole(before, copy)


@pytest.mark.parametrize("error", ["ENOSPC", "EIO", "EROFS"])
def test_a_disk_that_fails_loses_nothing(error: str, before: Before) -> None:
    total = num_calls(before)
    calls = sorted(random.Random(3).sample(range(1, total + 1), 5))
    ends = before.ingests([(call, getattr(errno, error)) for call in calls])
    for call, (copy, ended, said) in zip(calls, ends, strict=True):
        assert ended.how == ("1" if ended.calls >= call else "0"), "the failure is told; removing needs no room"
        assert ended.how == "0" or re.search(
            rf"LAKE-082: .*\n  \S*/{copy.name}\b.* bytes free, about 10,000 bytes are needed", said
        ), said
        ends_whole(before, copy)
