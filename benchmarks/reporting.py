"""What every benchmark gives back: targets with values, contenders, machine, versions, where the raw samples are."""

import json
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A figure and its bar. `value` None: could not be measured, and `note` says why."""

    name: str
    value: float | None
    target: float
    op: Literal[">=", "<="]
    note: str = ""

    @property
    def met(self) -> bool:
        if self.value is None:
            return False
        return self.value >= self.target if self.op == ">=" else self.value <= self.target


def result(
    bench: str,
    targets: Sequence[Target],
    contenders: dict[str, Any],
    samples: Any,
    packages: Sequence[str],
    results: Path = RESULTS,
) -> dict[str, Any]:
    """The object of `bench NAME`; writes the raw samples beside it to `results`."""
    stamp = datetime.now(UTC).strftime("%Y-%m-%d-%H%M%S")
    path = results / f"{bench}-{stamp}.json"
    found = {
        "bench": bench,
        "targets": [{**asdict(target), "met": target.met} for target in targets],
        "contenders": contenders,
        "machine": machine(),
        "versions": {name: version(name) for name in packages},
        "samples": f"benchmarks/results/{path.name}" if results == RESULTS else str(path),
    }
    results.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**found, "raw": samples}, indent=1) + "\n")
    return found


def machine() -> dict[str, Any]:
    """What a reader must know of the machine; load averages tell whether it was idle."""
    cpu = Path("/proc/cpuinfo")
    models = [line.partition(":")[2].strip() for line in cpu.read_text().splitlines() if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load": [round(value, 2) for value in os.getloadavg()],
    }


def spread(samples: Sequence[float]) -> dict[str, float]:
    """Minimum, median, maximum and count of raw samples."""
    return {
        "min": min(samples),
        "median": statistics.median(samples),
        "max": max(samples),
        "n": len(samples),
    }
