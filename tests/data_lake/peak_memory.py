"""A process that preprocesses some episodes of large images, and prints the most memory that it held, in MiB."""

import resource
import sys
from pathlib import Path

from data_lake.preprocess import preprocess_view
from data_lake.view import read_view
from tests.data_lake.lake_fixture import Recorded, request_for, write_dataset, write_view

SIZE, LENGTH = 224, 30


def main(root: Path, count: int) -> None:
    recorded = [Recorded(length=LENGTH) for _ in range(count)]
    root.mkdir()
    vector = write_dataset(root / "dataset", recorded, size=SIZE)
    write_view(root / "view", recorded, vector)
    (root / "out").mkdir()
    request = request_for(sample_stride=1, inputs={"image_size": SIZE}, image_bytes=4 << 20)
    preprocess_view(read_view(root / "view"), root / "dataset", request, root / "out")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
