"""Ingests into data sets, each in a process that kills itself at another note of its journal.

`python -m tests.data_lake.killed_ingest SOURCE ROWS_BYTES ROOT:STEP …` forks one process per data set. Step 1 is before
the first note is put, 2 right after it, and so on. Every video is a shelf; rows become a fragment at ROWS_BYTES.
"""

import os
import sys
import time
from pathlib import Path

from lance.fragment import FragmentMetadata

from data_lake import journal, shelf, writer
from data_lake.ingest import ingest_source
from data_lake.sources.snapshot import digests
from tests.data_lake.crashing_ingest import SPEC, dying


def settled(shelves: shelf.Shelves) -> tuple[int, list[FragmentMetadata]]:
    """Whatever else this machine has to do: each episode is noted."""
    while shelves._written:
        shelves._take()
    return shelves._num_durable, shelves._durable


def main(source: Path, rows_bytes: int, jobs: list[str]) -> None:
    for job in jobs:
        root, step = job.rsplit(":", 1)
        child = os.fork()
        if child == 0:
            shelf.SHELF_BYTES, writer.FRAGMENT_BYTES = 1, rows_bytes
            shelf.Shelves.durable = settled
            journal.put_if_absent = dying(journal.put_if_absent, [int(step)])
            out, known = Path(root).parent / f"{Path(root).name}-out", digests(source, Path(root).parent / "snapshots")
            ingest_source(
                source,
                SPEC,
                dataset_root=Path(root),
                out_dir=out,
                digests=known,
                on_progress=lambda *_: time.sleep(0.05),  # the notes' thread keeps up
            )
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(Path(root).name, "killed" if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
