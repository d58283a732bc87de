"""Edits of copies of a lake, each in a process that kills itself at another step of its writing.

`python -m tests.data_lake.edits.crashing_edits EDIT COPY:STEP …` forks one process per copy, before Lance is used.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from data_lake import writer
from data_lake.edits.compact import compact
from data_lake.edits.merge import merge
from data_lake.edits.relabel import relabel
from tests.data_lake.crashing_ingest import dying

NEW = "put the cube into the red box"
EDITS: dict[str, Callable[[Path], object]] = {
    "relabel": lambda lake: relabel(lake, "cart", [("1", NEW), ("2", NEW)], who="ada"),
    "merge": lambda lake: merge(lake, ["other"], "cart", who="ada"),
    "compact": lambda lake: compact(lake, "cart", who="ada"),
}
# two chances each: two fragments of frames (or one, and one of videos), commits of what changed, meta twice, manifest
STEPS = {"relabel": 2 * 6, "merge": 2 * 7, "compact": 2 * 7}


def main(edit: str, jobs: list[str]) -> None:
    for job in jobs:
        copy, step = job.rsplit(":", 1)
        child = os.fork()
        if child == 0:
            steps = [int(step)]
            writer._write = dying(writer._write, steps)
            writer._commit = dying(writer._commit, steps)
            writer.put_if_absent = dying(writer.put_if_absent, steps)
            EDITS[edit](Path(copy))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(Path(copy).name, "killed" if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
