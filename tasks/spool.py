"""metrics.jsonl, a JSON line per training step, as its readers see it while it grows."""

import json
from pathlib import Path
from typing import Any

TAIL_BYTES = 4096


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All complete lines; [] while there is no file."""
    if not path.exists():
        return []
    text = path.read_text()
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def last_line(path: Path) -> dict[str, Any] | None:
    """The last complete line; None while there is none."""
    if not path.exists():
        return None
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - TAIL_BYTES))
        complete = stream.read().split(b"\n")[:-1]
    return json.loads(complete[-1]) if complete else None
