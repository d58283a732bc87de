"""The parent of a job: starts its command, waits, and writes how it ended. Standard library only.

`python -m tasks.launchers.supervise DIRECTORY` runs the command of DIRECTORY/command.json, output to log.txt,
and leaves supervisor.json (who it is) and exit.json (the status), so that somebody who is no parent can learn both.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

GRACE_S = 10.0


def start_time(pid: int) -> str:
    """Clock ticks since boot at which a process started; "" when there is none. With the pid it names a
    process for good, since pids are used again."""
    fields = _stat(pid)
    return fields[19] if fields else ""


def state_letter(pid: int) -> str:
    """`R`, `S`, `Z` (ended, not yet collected) …; "" when there is no such process."""
    fields = _stat(pid)
    return fields[0] if fields else ""


def _stat(pid: int) -> list[str]:
    """Fields 3 and following of /proc/PID/stat; [] when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()  # the name in brackets may hold anything


def write_json(path: Path, content: object) -> None:
    """Write a JSON file in one step: a reader sees all of it or none."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(content))
    os.replace(draft, path)


def main(directory: Path) -> int:
    """Run the command of `directory`; returns its exit code, 128 + n for signal n."""
    job = json.loads((directory / "command.json").read_text())
    write_json(
        directory / "supervisor.json", {"job_id": job["job_id"], "pid": os.getpid(), "started": start_time(os.getpid())}
    )
    with (directory / "log.txt").open("ab") as log:
        child = subprocess.Popen(job["command"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def end_child(_number: int, _frame: FrameType | None) -> None:
        child.terminate()

    signal.signal(signal.SIGTERM, end_child)
    code = child.wait()
    spent = os.times()
    cpu_seconds = spent.children_user + spent.children_system
    write_json(directory / "exit.json", {"job_id": job["job_id"], "exit_code": code, "cpu_seconds": cpu_seconds})
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    if os.fork():  # whoever submits waits for this process only; the supervisor becomes nobody's child
        os._exit(0)
    sys.exit(main(Path(sys.argv[1])))
