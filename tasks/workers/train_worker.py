"""The training job: `python -m tasks.workers.train_worker --job job.json`, alone or as one rank of torchrun.

Reads packed rows, trains, checkpoints into the job's output; tells by files how it is: metrics.jsonl (a line per
step), beat (changes while it lives) and error.json (why it failed).
"""

import argparse
import json
import logging
import os
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from errors import Transient, UserError
from tasks.launchers.supervise import write_json

BEAT_S = 3.0


def main(arguments: list[str]) -> int:
    """Exit status 0 when the last step is checkpointed; else 1, and error.json says why."""
    parser = argparse.ArgumentParser(prog="train_worker", description=__doc__)
    parser.add_argument("--job", type=Path, required=True)
    job_path = parser.parse_args(arguments).job
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    rank = int(os.environ.get("RANK", "0"))
    if rank == 0:
        threading.Thread(target=_beat, args=(job_path.parent / "beat",), daemon=True).start()
    try:
        from tasks.workers.training_run import run  # torch takes seconds to import: the beat comes first

        run(json.loads(job_path.read_text()), rank=rank, world=int(os.environ.get("WORLD_SIZE", "1")))
    except Exception as error:  # an edge: whoever follows this job must learn why it ended
        traceback.print_exc()
        write_json(job_path.parent / "error.json", _told(error))
        return 1
    return 0


def _beat(path: Path) -> None:
    """Write a number that grows, for as long as this process can run Python."""
    for count in range(sys.maxsize):
        write_json(path, count)
        time.sleep(BEAT_S)


def _told(error: Exception) -> dict[str, Any]:
    told = {"transient": isinstance(error, Transient), "code": "TRAIN-001", "where": "", "done": "", "next_step": ""}
    if isinstance(error, UserError):
        return told | {
            "code": error.code,
            "message": error.message,
            "where": error.where,
            "done": error.done,
            "next_step": error.next_step,
        }
    return told | {"message": f"the training job failed: {type(error).__name__}: {error}"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
