"""A worker for tests of crews: does what its unit says, such as dying on the first try."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from errors import UserError
from tasks.workers.wire import Work, serve


def begin(settings: dict[str, Any]) -> Work:
    if settings.get("bad settings"):
        raise UserError("TEST-002", "bad settings")

    def work(unit: dict[str, Any]) -> dict[str, Any]:
        tried = Path(settings["folder"]) / f"tried-{unit['id']}"
        first = not tried.exists()
        tried.touch()
        print("a library that prints to standard output", flush=True)
        match unit.get("act"):
            case "die once" if first:
                os.kill(os.getpid(), signal.SIGKILL)
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hang once" if first:
                time.sleep(60)
            case "user error":
                raise UserError("TEST-001", "bad", where="here", next_step="mend it")
            case "bug":
                raise ValueError("a bug in the worker")
        return {"pid": os.getpid(), "big": "x" * unit.get("size", 0), "threads": os.environ["OMP_NUM_THREADS"]}

    return work


if __name__ == "__main__":
    serve(begin)
