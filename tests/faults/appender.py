"""One writer of several: appends rows of its own number to a data set and says so on stdout, until told otherwise.

`python -m tests.faults.appender ROOT WRITER FIRST LAST` appends (WRITER, FIRST) … (WRITER, LAST - 1), two rows each.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from data_lake.writer import Writer

ROWS = 2


def append(root: Path, writer_number: int, number: int) -> int:
    """The version that holds it. Another writer that was first makes it begin again."""
    while True:
        writer = Writer(root)
        index = np.arange(writer.num_frames, writer.num_frames + ROWS)
        columns = {"index": index, "writer": np.full(ROWS, writer_number), "number": np.full(ROWS, number)}
        writer.add_frames(pa.table(columns))
        before = writer.base.num_episodes if writer.base else 0
        manifest = writer.commit({"info.json": b"{}"}, num_episodes=before + 1)
        if manifest is not None:
            return manifest.version


if __name__ == "__main__":
    writer_number, first, last = map(int, sys.argv[2:])
    for number in range(first, last):
        print(number, append(Path(sys.argv[1]), writer_number, number), flush=True)
