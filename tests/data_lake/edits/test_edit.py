"""Edits that are killed at any step, and beside an ingest: readers see the version before or the one after."""

import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from data_lake.edits.edit import damaged
from data_lake.tables import versions
from data_lake.version import open_version
from tests.data_lake.edits.crashing_edits import EDITS, NEW, STEPS
from tests.data_lake.edits.test_merge import other_rows
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import content, ingest


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """`cart` came in two steps, `other` from elsewhere."""
    root = tmp_path / "lake/datasets"
    ingest(write_v2(tmp_path / "short", (8, 12)), root / "cart")
    ingest(write_v2(tmp_path / "whole", (8, 12, 10)), root / "cart")
    ingest(write_v2(tmp_path / "garage", (6,), rows=other_rows), root / "other")
    return tmp_path / "lake"


def seen(lake: Path) -> dict[str, Any]:
    """The newest version, and in how many fragments it lies."""
    version = open_version(lake, "cart")
    parts = {name: len(version.table(name).get_fragments()) for name in ("frames", "videos")}
    return content(version.root) | {"fragments": parts}


@pytest.mark.parametrize(
    "edit", ["relabel", *(pytest.param(name, marks=pytest.mark.slow) for name in ("compact", "merge"))]
)
def test_a_crash_at_any_step_shows_all_or_nothing(lake: Path, tmp_path: Path, edit: str) -> None:
    """SIGKILL before and after each write and commit; the same edit then ends where no crash would have."""
    old = seen(lake)
    undisturbed = Path(shutil.copytree(lake, tmp_path / "undisturbed"))
    EDITS[edit](undisturbed)
    new = seen(undisturbed)
    assert new != old
    count = STEPS[edit]
    copies = [Path(shutil.copytree(lake, tmp_path / f"copy{number}")) for number in range(count)]
    jobs = [f"{copy}:{step}" for step, copy in enumerate(copies, start=1)]
    command = [sys.executable, "-m", "tests.data_lake.edits.crashing_edits", edit, *jobs]
    ended = subprocess.run(
        command, cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=240, check=True
    )
    assert [line.split()[1] for line in ended.stdout.splitlines()] == ["killed"] * count
    for step, copy in enumerate(copies, start=1):
        is_done = step == count  # killed after the manifest was put
        assert seen(copy) == (new if is_done else old), step
        if not is_done:
            EDITS[edit](copy)
        assert seen(copy) == new and versions(copy / "datasets/cart") == [1, 2, 3], step


def test_beside_ingests_nothing_is_lost(lake: Path, tmp_path: Path) -> None:
    """Three edits and an ingest at once: whoever is second begins again on what the first made."""
    more = write_v2(tmp_path / "more", (8, 12, 10, 7))
    failures: list[BaseException] = []

    def work(edit: Any) -> None:
        try:
            edit(lake)
        except BaseException as error:
            failures.append(error)
            raise

    jobs = [*EDITS.values(), lambda at: ingest(more, at / "datasets/cart")]
    threads = [threading.Thread(target=work, args=(each,)) for each in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    version = open_version(lake, "cart")
    assert [row["instruction"] for row in version.episodes[1:3]] == [NEW, NEW]
    assert sorted(row["length"] for row in version.episodes) == [6, 7, 8, 10, 12]
    index = version.table("frames").to_table(columns=["index"])["index"].to_pylist()
    assert index == list(range(43))


def test_the_data_set_is_named_in_the_next_step() -> None:
    assert damaged("x", "cart@3 · episode 1").next_step == "./vlaloop doctor cart"
