"""A process that preprocesses some episodes of large images, and prints the most memory that it held, in MiB."""

import sys
from pathlib import Path

from data_lake.preprocess import preprocess_view
from data_lake.view import read_view
from tests.data_lake.lake_fixture import Recorded, request_for, write_dataset, write_view

SIZE, LENGTH = 224, 30


def make(root: Path, count: int) -> None:
    """The data set; by another process, since all its images are in memory at once."""
    recorded = [Recorded(length=LENGTH) for _ in range(count)]
    root.mkdir()
    write_view(root / "view", recorded, write_dataset(root / "dataset", recorded, size=SIZE))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "out").mkdir()
    asked = request_for(sample_stride=1, inputs={"image_size": SIZE}, image_bytes=4 << 20)
    preprocess_view(read_view(folder / "view"), folder / "dataset", asked, folder / "out")
    status = Path("/proc/self/status").read_text()  # getrusage would count the process that began this one, too
    print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
