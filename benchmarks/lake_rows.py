"""A data set of 1e5 episodes and 1e8 rows: taken in, listed, opened, sampled and appended to, all by the real paths.

The source makes its rows when it is asked for them, so that what is measured is the lake and not a file format. Each
measurement is a process of its own, whose peak of memory is its own alone; imports are not counted.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from benchmarks.reporting import Target
from data_lake.head import look_at_head, take_head
from data_lake.ingest import ingest_source
from data_lake.overview import overview
from data_lake.sources.episode import NOTHING, Episode, Feature, Part, SourceCard
from data_lake.specs import IngestSpec, ReadSpec
from data_lake.tables import dataset_root, read_manifest, versions
from data_lake.version import open_version
from data_lake.view import read_view
from flows.places import ROOT

NUM_EPISODES, APPENDED = 100_000, 1_000
LENGTHS = (800, 1201)  # 1,000 rows an episode on average
DIM, FPS, NUM_TASKS = 7, 20.0, 50
SAMPLES, SAMPLES_PER_STEP, HORIZON = 10_000, 64, 16
DATASET = "made"


class MadeRows:
    """A source whose file says `{"first", "num_episodes"}`: episodes of a state and an action, seven numbers each."""

    TAKES: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, path: Path, read: ReadSpec) -> None:
        told = json.loads(path.read_text())
        self._numbers = range(told["first"], told["first"] + told["num_episodes"])
        vector = Feature(dtype="float32", shape=(DIM,))
        self.card = SourceCard(
            root=path,
            format="made",
            version="1",
            fps=FPS,
            robot="made",
            features={"observation.state": vector, "action": vector},
            cameras=(),
            num_episodes=len(self._numbers),
            instruction_source="task",
            declared={"action_mode": "absolute"},
        )

    @property
    def parts(self) -> Sequence[Part]:
        return [Part(files=(self.card.root,), said=str(number)) for number in self._numbers]

    @property
    def shared(self) -> Mapping[str, str]:
        return {}

    def episodes(self, left_out: Mapping[int, int] = NOTHING) -> Iterator[Episode]:
        random = np.random.default_rng(0)
        pool_TD = np.cumsum(random.standard_normal((2 * LENGTHS[1], DIM)), axis=0).astype(np.float32) / 100
        for place, number in enumerate(self._numbers):
            if place not in left_out:
                yield _episode(number, pool_TD)

    @staticmethod
    def recognises(path: Path) -> bool:
        return path.suffix == ".made"


def _episode(number: int, pool_TD: np.ndarray) -> Episode:
    """A piece of a random walk, moved and turned by the episode's number: no two are alike."""
    random = np.random.default_rng(number)
    length, begin = int(random.integers(*LENGTHS)), int(random.integers(LENGTHS[1] // 2))
    state_TD = pool_TD[begin : begin + length] + random.standard_normal(DIM).astype(np.float32)
    action_TD = np.roll(state_TD, -1, axis=0) * np.float32(1.01)
    frame_T = np.arange(length)
    rows = pa.table(
        {
            "observation.state": _lists(state_TD),
            "action": _lists(action_TD),
            "timestamp": (frame_T / FPS).astype(np.float32),
            "frame_index": frame_T,
            "task": pa.repeat(pa.scalar(f"put object {number % NUM_TASKS} into the box"), length),
        }
    )
    return Episode(source_episode=number, rows=rows, instruction=rows["task"][0].as_py(), length=length)


def _lists(rows_TD: np.ndarray) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(rows_TD).reshape(-1)), rows_TD.shape[1])


def measure(home: Path, num_episodes: int = NUM_EPISODES) -> dict[str, dict[str, float]]:
    """Seconds, peak of memory and the work of each measurement, in order, on one lake that is removed at the end."""
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(dir=home if home.is_dir() else None) as folder:
        for name in MEASURED:
            command = [sys.executable, "-m", "benchmarks.lake_rows", name, folder, str(num_episodes)]
            found[name] = json.loads(subprocess.check_output(command, text=True, cwd=ROOT))
    rows = found["build"]["work"]
    assert all(found[name]["work"] == rows for name in ("list", "show", "open_version", "open_view")), found
    return found


def targets(found: Mapping[str, Mapping[str, float]]) -> list[Target]:
    share = found["append"]["seconds"] / found["build"]["seconds"]
    note = f"{found['append']['work']:,.0f} rows after {found['build']['work']:,.0f}"
    return [Target(name="append_share", value=share, target=0.02, op="<=", note=note)]


def build(lake: Path, num_episodes: int) -> int:
    return _take_in(lake, 0, num_episodes)


def append(lake: Path, num_episodes: int) -> int:
    return _take_in(lake, num_episodes, max(1, num_episodes * APPENDED // NUM_EPISODES))


def _take_in(lake: Path, first: int, num_episodes: int) -> int:
    out = lake / f"view-{first}"
    out.mkdir(parents=True)
    source = out / "source.made"
    source.write_text(json.dumps({"first": first, "num_episodes": num_episodes}))
    spec = IngestSpec(dataset=DATASET, embodiment="made", format="benchmarks.lake_rows:MadeRows")
    return ingest_source(source, spec, dataset_root=lake / "datasets" / DATASET, out_dir=out).num_frames


def show(lake: Path, num_episodes: int) -> int:
    """What the command of that name tells."""
    return overview(open_version(lake, DATASET)).num_frames


def list_versions(lake: Path, num_episodes: int) -> int:
    root = dataset_root(lake, DATASET)
    found = [read_manifest(root, number) for number in versions(root)]
    return sum(each.num_frames for each in found if each is not None)


def open_newest(lake: Path, num_episodes: int) -> int:
    return open_version(lake, DATASET).table("frames").count_rows()


def take_all(lake: Path, num_episodes: int) -> int:
    """What a loop with `ingest.source: lake:NAME` begins with."""
    out = lake / "view-of-head"
    out.mkdir()
    source = look_at_head(lake, f"lake:{DATASET}")
    return take_head(lake, source, IngestSpec(dataset=DATASET, embodiment="made"), out).num_frames


def open_view(lake: Path, num_episodes: int) -> int:
    """What preprocessing begins with."""
    return sum(episode.length for episode in read_view(lake / "view-0").episodes)


def sample(lake: Path, num_episodes: int) -> int:
    """Rows anywhere, each with the actions of the next 16 steps, 64 at a time as a step of training reads them."""
    version = open_version(lake, DATASET)
    frames = version.table("frames")
    num_rows = version.manifest.num_frames
    random = np.random.default_rng(1)
    work = 0
    for _ in range(SAMPLES // SAMPLES_PER_STEP):
        first_N = random.integers(0, num_rows - HORIZON, SAMPLES_PER_STEP)
        state = frames.take(first_N.tolist(), columns=["observation_state"])
        chunk = frames.take((first_N[:, None] + np.arange(HORIZON)).reshape(-1).tolist(), columns=["action"])
        work += state.num_rows + chunk.num_rows
    return work


MEASURED: dict[str, Callable[[Path, int], int]] = {
    "build": build,
    "list": list_versions,
    "show": show,
    "open_version": open_newest,
    "open_view": open_view,
    "head": take_all,
    "sample": sample,
    "append": append,
}


if __name__ == "__main__":
    name, lake, count = sys.argv[1:]
    started = time.perf_counter()
    work = MEASURED[name](Path(lake), int(count))
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "rss_mb": peak, "work": work}))
