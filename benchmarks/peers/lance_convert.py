"""Turns LeRobot v3.0 folders into Lance tables with `lerobot-lance-convert`'s own function, and forces them to disk.

A script for the peers' environment (benchmarks/peer.py): each line of input is `{"root": …, "out": …}`.
"""

import contextlib
import json
import os
import sys
from pathlib import Path

from lerobot_lancedb.convert import convert


def main() -> None:
    for line in sys.stdin:
        order = json.loads(line)
        out = Path(order["out"])
        with contextlib.redirect_stdout(sys.stderr):
            convert(out, root=Path(order["root"]))
        for path in out.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.fsync(file.fileno())
        print(json.dumps({"files": sum(path.is_file() for path in out.rglob("*"))}), flush=True)


if __name__ == "__main__":
    main()
