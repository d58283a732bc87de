"""Taking recordings into the lake beside copying their bytes (`cp -r` with fsync, and with `sha256sum`) and beside
LanceDB's own converter.

The recordings are made for it: more than 2 GB of H.264 in 200 episodes, each file seen for the first time. One warm
process, interleaved; verification is on, and the bytes in the lake are compared with the source's at the end.
"""

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lance

from benchmarks.peer import MAKE_IT, Peer, peers_python
from benchmarks.recordings import write_recordings
from benchmarks.reporting import Target, result, spread
from data_lake.exports import publish_folder
from data_lake.files import sync, tree
from data_lake.ingest import OnProgress, ingest_source
from data_lake.ingested import Ingested
from data_lake.sources.snapshot import snapshot, verify
from data_lake.specs import IngestSpec
from data_lake.tables import open_table, read_manifest
from data_lake.version import open_version
from flows.places import ROOT

ROUNDS = 4
NUM_EPISODES, EPISODE_BYTES = 200, 11 << 20
SPEC = IngestSpec(dataset="made", embodiment="made")
CONVERTER = "lerobot_lance_convert"
PACKAGES = ("pylance", "av", "blake3")


def main(lake: Path, home: Path) -> dict[str, Any]:
    """`bench ingest`."""
    with tempfile.TemporaryDirectory(dir=home if home.is_dir() else None) as folder:
        root = Path(folder)
        source = write_recordings(root / "source", NUM_EPISODES, EPISODE_BYTES)
        num_bytes = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
        with _converter(source, root) as converter:
            seconds = _interleaved(
                root,
                {
                    "cp_fsync": lambda out: _copy(source, out, hashed=False),
                    "cp_fsync_sha256sum": lambda out: _copy(source, out, hashed=True),
                    "vlaloop": lambda out: take_in(source, out),
                    **converter,
                },
            )
        _same_bytes(source, root / "vlaloop")
        again_s, new = _again(source, root / "vlaloop")
        resumed = _resumed(source, root / "resumed")
    median = {name: statistics.median(samples) for name, samples in seconds.items()}
    targets = [
        Target(name="vs_copy", value=median["cp_fsync"] / median["vlaloop"], target=0.85, op=">="),
        Target(
            name="reingest_share",
            value=again_s / median["vlaloop"],
            target=0.02,
            op="<=",
            note=f"{new} new episodes",
        ),
        Target(
            name="vs_converter",
            value=median[CONVERTER] / median["vlaloop"] if CONVERTER in median else None,
            target=1.0,
            op=">=",
            note="" if CONVERTER in median else MAKE_IT,
        ),
        Target(name="resume_redone", value=resumed["redone"], target=0.05, op="<="),
    ]
    figures = {
        name: {"seconds": spread(samples), "mb_per_s": num_bytes / 1e6 / median[name]}
        for name, samples in seconds.items()
    }
    return result("ingest", targets, figures, {"seconds": seconds, "bytes": num_bytes, "resume": resumed}, PACKAGES)


def _interleaved(root: Path, contenders: dict[str, Callable[[Path], object]]) -> dict[str, list[float]]:
    """Seconds of each, in turns, each into a folder of its name; the first round is left out."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS + 1):
        for name, contender in contenders.items():
            shutil.rmtree(root / name, ignore_errors=True)
            os.sync()
            started = time.perf_counter()
            contender(root / name)
            seconds[name].append(time.perf_counter() - started)
    return {name: samples[1:] for name, samples in seconds.items()}


@contextmanager
def _converter(source: Path, root: Path) -> Iterator[dict[str, Callable[[Path], object]]]:
    """LanceDB's own converter in a warm process, where the peers' environment is: it checks nothing, and takes v3.0
    only, so it is given the same videos in that form."""
    python = peers_python()
    if python is None:
        yield {}
        return
    take_in(source, root / "first")
    publish_folder(open_version(root / "first/lake", "made"), root / "v30", "v3.0")
    shutil.rmtree(root / "first")
    with Peer(python, "lance_convert.py") as peer:
        yield {CONVERTER: lambda out: peer.ask(root=str(root / "v30"), out=str(out))}


def take_in(source: Path, out: Path, on_progress: OnProgress = lambda _done, _total, _figures: None) -> Ingested:
    """Snapshot, ingest and the check that nothing changed meanwhile: what the stage does."""
    ref = snapshot(source, out / "home")
    return ingest_source(
        source,
        SPEC,
        dataset_root=out / "lake/datasets/made",
        out_dir=out / "view",
        digests=verify(ref, out / "home"),
        on_progress=on_progress,
        unchanged=lambda: verify(ref, out / "home"),
    )


def _copy(source: Path, out: Path, *, hashed: bool) -> None:
    subprocess.run(["cp", "-r", source, out], check=True)
    files = [path for path in out.rglob("*") if path.is_file()]
    for path in files:
        sync(path)
    if hashed:
        subprocess.run(["sha256sum", *files], check=True, stdout=subprocess.DEVNULL)


def _same_bytes(source: Path, out: Path) -> None:
    """Every video of the lake is a file of the source, byte for byte."""
    root = out / "lake/datasets/made"
    manifest = read_manifest(root)
    assert manifest is not None and manifest.num_episodes == NUM_EPISODES
    videos: lance.LanceDataset = open_table(root, manifest, "videos")
    for number, path in enumerate(sorted(source.rglob("*.mp4"))):
        blob = videos.take_blobs("video_bytes", indices=[number])[0]
        assert blob is not None and blob.readall() == path.read_bytes(), path


def _again(source: Path, out: Path) -> tuple[float, int]:
    """Seconds of the same ingest once more, and the episodes that it added."""
    samples, new = [], 0
    for _ in range(ROUNDS):
        started = time.perf_counter()
        new += take_in(source, out).num_new
        samples.append(time.perf_counter() - started)
    return statistics.median(samples), new


def _resumed(source: Path, out: Path) -> dict[str, float]:
    """A run that is killed after half of the episodes, and the same command again: what was written twice, as a share
    of what a whole run writes. Bytes, not seconds: what the disk still has to do for others would decide those."""
    _run_alone(source, out, kill_after=NUM_EPISODES // 2)
    killed = _written(out)
    _run_alone(source, out, kill_after=None)
    whole = out.with_name("whole")
    _run_alone(source, whole, kill_after=None)
    return {"redone": _written(out) / _written(whole) - 1, "killed_bytes": killed, "whole_bytes": _written(whole)}


def _written(out: Path) -> int:
    """Bytes in the data set's tables, those of no version too."""
    return sum(path.stat().st_size for path in tree(out / "lake/datasets/made"))


def _run_alone(source: Path, out: Path, *, kill_after: int | None) -> None:
    """One ingest in a process of its own, until its end or until `kill_after` episodes are examined."""
    command = [sys.executable, "-m", "benchmarks.ingest", str(source), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if kill_after is not None and int(line) >= kill_after:
                process.send_signal(signal.SIGKILL)
                break


if __name__ == "__main__":
    take_in(Path(sys.argv[1]), Path(sys.argv[2]), on_progress=lambda done, _total, _figures: print(done, flush=True))
