"""Ingests into copies of a data set, each in a process that kills itself at another step of the commit.

`python -m tests.data_lake.crashing_ingest SOURCE COPY:STEP …` forks one process per copy, before Lance is used.
`COPY:0.05` instead kills it from outside after 0.05 seconds.
"""

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from data_lake import writer
from data_lake.files import lake_path
from data_lake.ingest import ingest_source
from data_lake.sources.snapshot import digests
from data_lake.specs import IngestSpec

SPEC = IngestSpec(dataset="cart", embodiment="cart")
# one call each of: fragments of frames, of videos, commit of frames, of videos, fragments of meta, its commit, manifest
STEPS = 7


def dying(fn: Callable[..., Any], steps: list[int]) -> Callable[..., Any]:
    """`fn`, which ends the process when its turn has come: before the call, or right after it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        steps[0] -= 1
        if steps[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        result = fn(*args, **kwargs)
        steps[0] -= 1
        if steps[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return call


def main(source: Path, jobs: list[str]) -> None:
    for job in jobs:
        copy, step = job.rsplit(":", 1)
        moment = float(step) if "." in step else None
        child = os.fork()
        if child == 0:
            steps = [0 if moment is not None else int(step)]
            writer._write = dying(writer._write, steps)
            writer._commit = dying(writer._commit, steps)
            writer.put_if_absent = dying(writer.put_if_absent, steps)
            with tempfile.TemporaryDirectory() as out:
                known = digests(source, Path(out) / "snapshots")
                ingest_source(source, SPEC, dataset_root=lake_path(copy), out_dir=Path(out), digests=known)
            os._exit(0)
        if moment is not None:
            time.sleep(moment)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        print(Path(copy).name, "killed" if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
