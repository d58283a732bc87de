"""Ingests into copies of a data set, each in a process in which one call that changes files goes wrong.

`python -m tests.faults.faulty_ingest SOURCE COPY:CALL:ERRNO …`, with the shim preloaded, forks one process per copy
before Lance is used, and prints how it ended and how many such calls it made. CALL 0: nothing goes wrong; ERRNO 0:
killed there.
"""

import ctypes
import mmap
import os
import sys
import traceback
from pathlib import Path

from data_lake.disk import disk_faults
from data_lake.ingest import ingest_source
from data_lake.sources.snapshot import digests
from tests.data_lake.crashing_ingest import SPEC


def main(source: Path, jobs: list[str]) -> None:
    shim = ctypes.CDLL(None)
    shim.counted.restype = ctypes.c_long
    for job in jobs:
        copy, call, error = job.rsplit(":", 2)
        known = digests(source, Path(copy).parent / "snapshots")
        told = mmap.mmap(-1, 8)  # shared with the child
        child = os.fork()
        if child == 0:
            out = Path(copy).parent / f"{Path(copy).name}-out"
            out.mkdir(exist_ok=True)
            shim.arm(copy.encode(), ctypes.c_long(int(call)), int(error))  # `copy` is a prefix of `out` too
            code = 0
            try:
                with disk_faults(out, needed_bytes=10_000):
                    ingest_source(source, SPEC, dataset_root=Path(copy), out_dir=out, digests=known)
            except Exception:  # whatever it is, a person would see it
                traceback.print_exc()
                code = 1
            told[:] = shim.counted().to_bytes(8, "little")
            os._exit(code)
        _, status = os.waitpid(child, 0)
        ended = "killed" if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)
        print(Path(copy).name, ended, int.from_bytes(told[:], "little"), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
