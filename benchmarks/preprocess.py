"""Decoding, conversion to RGB and resizing in preprocessing, beside bare PyAV on the same files with the same resizing.

The recordings are made for it: H.264 of 640 x 480, to 224 x 224. Each side has all cores and is warm (bare PyAV: a
process per core that takes one video after the other), interleaved; checksums of every prepared image prove the same
work. Marks and writing are timed apart. Then one percent is appended to a thousand small episodes.
"""

import multiprocessing
import os
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
from threadpoolctl import threadpool_limits

from benchmarks.recordings import ACTION_DIM, FPS, STATE_DIM, write_recordings
from benchmarks.reporting import Target, result, spread
from data_lake.blocks import blocks_of
from data_lake.cluster import joined
from data_lake.earlier import Earlier, Output
from data_lake.files import sha256
from data_lake.images import prepared_images
from data_lake.ingest import ingest_source
from data_lake.marks import marks_of
from data_lake.prepare import Workshop, block_json, block_of, prepare_block
from data_lake.preprocess import preprocess_view
from data_lake.request import Request
from data_lake.runners import NATIVE, RAY, Runner
from data_lake.specs import IngestSpec
from data_lake.steps import read_steps
from data_lake.view import DatasetView, read_view
from data_lake.vouched import read_before_use
from model_core.embodiments import Embodiment, layout_of
from model_core.transforms import prepare_view
from tasks.preprocess import FUNCTIONS

ROUNDS = 4
NUM_EPISODES, EPISODE_BYTES = 16, 4 << 20
SMALL_EPISODES, SMALL_BYTES, SHARE = 1000, 600_000, 0.01
SIZE, CAMERA = 224, "front"
SPEC = IngestSpec(dataset="made", embodiment="made")
ROBOT = Embodiment(
    name="made",
    cameras=(CAMERA,),
    state_names=tuple(f"state_{dim}" for dim in range(STATE_DIM)),
    action_names=tuple(f"action_{dim}" for dim in range(ACTION_DIM)),
    state_units=("rad",) * STATE_DIM,
    action_units=("rad",) * ACTION_DIM,
    control_hz=float(FPS),
    delta_mask=(False,) * ACTION_DIM,
    action_from_state=(-1,) * ACTION_DIM,
    action_low=None,
    action_high=None,
)
PACKAGES = ("av", "daft", "ray", "pylance", "numpy")


def main(lake: Path, home: Path) -> dict[str, Any]:
    """`bench preprocess`."""
    workers = os.cpu_count() or 1
    with tempfile.TemporaryDirectory(dir=home if home.is_dir() else None) as folder:
        root = Path(folder)
        source = write_recordings(root / "source", NUM_EPISODES, EPISODE_BYTES)
        view = taken_in(source, root)
        frames = sum(episode.length for episode in view.episodes)
        rates = {name: [frames / each / workers for each in taken] for name, taken in _seconds(source, view, root)}
        apart = _apart(view, root)
        appended = _appended(root / "small", workers)
    median = {name: statistics.median(samples) for name, samples in rates.items()}
    targets = [
        Target(name="native_vs_pyav", value=median["native"] / median["pyav"], target=0.8, op=">="),
        Target(name="ray_vs_pyav", value=median["ray"] / median["pyav"], target=0.6, op=">=", note="warm cluster"),
        Target(
            name="append_share",
            value=appended["append_s"] / appended["build_s"],
            target=0.02,
            op="<=",
            note=f"{appended['added']} episodes more, {appended['prepared']} prepared",
        ),
    ]
    figures = {name: {"frames_per_s_per_core": spread(samples)} for name, samples in rates.items()}
    raw = {"frames_per_s_per_core": rates, "apart": apart, "append": appended, "frames": frames}
    return result("preprocess", targets, {**figures, "apart": apart, "append": appended}, raw, PACKAGES)


def taken_in(source: Path, root: Path, **choice: Any) -> DatasetView:
    """The recordings in a data set of `root`, and the view of them."""
    ingest_source(source, SPEC, dataset_root=root / "dataset", out_dir=root / "view", **choice)
    return read_view(root / "view")


def request() -> Request:
    """Every frame, 224 x 224, as the `small` policies see them."""
    inputs = {"views": [CAMERA], "image_size": SIZE, "sight": "full", "state": "token", "max_text_tokens": 8}
    inputs |= {"tokenizer": "words", "sentencepiece_model": None}
    return Request(sample_stride=1, heldout_episodes=(), inputs=inputs, layout=layout_of(ROBOT), functions=FUNCTIONS)


def _seconds(source: Path, view: DatasetView, root: Path) -> list[tuple[str, list[float]]]:
    """Seconds of each side in each round, after one that warms all. The same checksums come from all sides."""
    workers, videos = os.cpu_count() or 1, sorted(map(str, source.rglob("*.mp4")))
    taken: dict[str, list[float]] = {"pyav": [], "native": [], "ray": []}
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, spawn, threadpool_limits, (1,)) as bare, joined(""):
        sides: dict[str, Callable[[], list[int]]] = {
            "pyav": lambda: list(bare.map(_checksum, videos)),
            "native": lambda: _by_runner(view, root, Runner(name=NATIVE)),
            "ray": lambda: _by_runner(view, root, Runner(name=RAY, workers=2 * workers)),
        }
        for _ in range(ROUNDS + 1):
            found: dict[str, list[int]] = {}
            for name, side in sides.items():
                started = time.perf_counter()
                found[name] = sorted(side())
                taken[name].append(time.perf_counter() - started)
            assert found["pyav"] == found["native"] == found["ray"], "not the same images"
    return [(name, samples[1:]) for name, samples in taken.items()]


def _by_runner(view: DatasetView, root: Path, runner: Runner) -> list[int]:
    """The checksum of each episode, by the units of preprocessing on its runner."""
    sums = root / "sums"
    sums.mkdir(exist_ok=True)
    workshop = Workshop.of(view, root / "dataset", request(), sums).dumps()
    units = [block_json(block) for block in blocks_of(view, request(), [0] * len(view.episodes))]
    for _ in runner.run("benchmarks.preprocess:decoded_block", workshop, units):
        pass
    return [int(path.read_text()) for path in sums.iterdir()]


def decoded_block(workshop_json: str, block_text: str) -> None:
    """A block's images prepared and thrown away; the checksum of each episode is left."""
    workshop, block = Workshop.loads(workshop_json), block_of(block_text)
    for episode in block.episodes:
        total = 0
        for image, _ in prepared_images(
            workshop.images(), episode.spans[0], range(episode.length), episode.episode_index
        ):
            total = zlib.crc32(image.tobytes(), total)
        (Path(workshop.out) / str(episode.episode_index)).write_text(str(total))


def _checksum(path: str) -> int:
    """Of a video's images, by what does nothing but this."""
    total, inputs = 0, request().inputs
    with av.open(path) as container:
        for frame in container.decode(video=0):
            total = zlib.crc32(prepare_view(frame.to_ndarray(format="rgb24"), inputs).tobytes(), total)
    return total


def _apart(view: DatasetView, root: Path) -> dict[str, float]:
    """Seconds per thousand frames of marks, and of a whole block beyond decoding: reading rows, writing, syncing."""
    blocks = blocks_of(view, request(), [0] * len(view.episodes))
    frames, out = blocks[0].num_steps, root / "apart"
    out.mkdir()
    workshop = Workshop.of(view, root / "dataset", request(), out).dumps()
    started = time.perf_counter()
    decoded_block(workshop, block_json(blocks[0]))
    decoded = time.perf_counter()
    prepare_block(workshop, block_json(blocks[0]))
    prepared = time.perf_counter()
    for steps in read_steps(str(root / "dataset/frames.lance"), view.vector["frames"], blocks[0].episodes):
        marks_of(steps.proprio_TP, steps.actions_TA, view.meaning["fps"], 0)
    marked = time.perf_counter()
    return {
        "decode_s": (decoded - started) / frames * 1000,
        "rest_s": (prepared - 2 * decoded + started) / frames * 1000,
        "marks_s": (marked - prepared) / frames * 1000,
    }


def _appended(root: Path, workers: int) -> dict[str, float]:
    """Seconds of preprocessing many small episodes, and of the same with one percent more of them."""
    source = write_recordings(root / "source", SMALL_EPISODES, SMALL_BYTES)
    view = taken_in(source, root)
    before = replace(view, episodes=view.episodes[: round(SMALL_EPISODES / (1 + SHARE))])
    runner = Runner(workers=workers)
    (root / "first").mkdir()
    (root / "second").mkdir()
    started = time.perf_counter()
    preprocess_view(before, root / "dataset", request(), root / "first", runner=runner)
    built = time.perf_counter()
    earlier = Earlier(root / "second", [_finished(root / "first")])
    begun = time.perf_counter()
    made = preprocess_view(view, root / "dataset", request(), root / "second", runner=runner, earlier=earlier)
    return {
        "build_s": built - started,
        "append_s": time.perf_counter() - begun,
        "added": len(view.episodes) - len(before.episodes),
        "prepared": len(view.episodes) - made.num_adopted,
    }


def _finished(folder: Path) -> Output:
    """An earlier build as the record of its slot vouches for it."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    files = {name: {"size": (folder / name).stat().st_size, "sha256": sha256(folder / name)} for name in names}
    return Output(
        folder=folder,
        digests={name: told["sha256"] for name, told in files.items()},
        large=frozenset(files) - frozenset(read_before_use(files)),
    )
