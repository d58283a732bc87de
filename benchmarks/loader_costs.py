"""What reading costs beside its rate, for `bench loader`: growth of memory, CPU cores for eight GPUs, and how to read
without the system's memory of files."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.recordings import write_recordings
from data_lake.frames import FrameReader
from data_lake.ingest import ingest_source
from data_lake.specs import IngestSpec
from data_lake.version import open_version
from model_core.transforms import prepare_view

EMPTIED_EVERY_S = 0.25
NUM_GPUS, SAMPLES_PER_S, CAMERAS, IMAGE_SIZE = 8, 74, 2, 224
EPISODES, EPISODE_BYTES, BATCH = 2, 8 << 20, 16


def cores_for_gpus(folder: Path) -> dict[str, float]:
    """CPU cores that keep NUM_GPUS fed at SAMPLES_PER_S each, from the CPU seconds of random pictures of 640 x 480
    H.264, each a key frame, decoded and prepared; a sample has CAMERAS of them."""
    source = write_recordings(folder / "h264", EPISODES, EPISODE_BYTES)
    root = folder / "h264-lake/datasets/h264"
    ingest_source(
        source, IngestSpec(dataset="h264", embodiment="made"), dataset_root=root, out_dir=folder / "h264-lake/ingest"
    )
    frames = FrameReader(open_version(folder / "h264-lake", "h264"), threads=1)
    order = np.random.default_rng(0).permutation(len(frames))
    frames.batch(order[:BATCH])
    started = time.process_time()
    for start in range(0, len(order), BATCH):
        for images in frames.batch(order[start : start + BATCH]).images.values():
            for image in images:
                prepare_view(image, {"image_size": IMAGE_SIZE})
    picture_s = (time.process_time() - started) / len(order)
    sample_s = picture_s * CAMERAS
    return {"core_s_per_sample": sample_s, "cores": NUM_GPUS * SAMPLES_PER_S * sample_s}


@contextmanager
def emptied(files: Sequence[Path]) -> Iterator[None]:
    """Drops what the system remembers of the files, again and again: readers are allowed no more memory of them than
    what they read in EMPTIED_EVERY_S."""
    done = threading.Event()

    def drop() -> None:
        opened = [os.open(path, os.O_RDONLY) for path in files]
        while not done.wait(EMPTIED_EVERY_S):
            for file in opened:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        for file in opened:
            os.close(file)

    os.sync()
    thread = threading.Thread(target=drop)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def rss_mib() -> float:
    """Memory of this process that is resident now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
