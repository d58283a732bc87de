"""What two lakes of the same loop must have in common, whatever happened on the way."""

from pathlib import Path
from typing import Any

from data_lake.store import records


def records_by_stage(lake: Path) -> dict[str, dict[str, Any]]:
    return {record["stage"]: record for record in records(lake)}


def contents(record: dict[str, Any]) -> dict[str, str]:
    """Hash by name of what a record vouches for, attempts, timings and Lance's random file names aside."""
    timed = ("metrics.jsonl", "job.log", "exit.json")  # wall-clock figures stand in them
    files = {name.split("/", 2)[-1]: file["sha256"] for name, file in record["files"].items()}
    kept = {name: digest for name, digest in files.items() if not name.endswith(timed)}
    kept |= {name: "" for name in kept if name.startswith("blocks/")}  # named by content, they tell names of files
    plain = {name: digest for name, digest in kept.items() if ".lance/" not in name}
    tables = sorted((name.partition(".lance/")[0], digest) for name, digest in kept.items() if ".lance/data/" in name)
    return plain | {f"{table} {number}": digest for number, (table, digest) in enumerate(tables)}
