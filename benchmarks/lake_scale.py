"""A billion samples: planning their packing, and looking up any step, within a fixed amount of memory.

The samples are those of 3,000,000 episodes with lengths, views and texts drawn at random; a process of its own
plans and looks up, so that its peak of memory is theirs alone. Then 1e8 rows that are really there: `lake_rows`.
"""

import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.packing import CAPACITY, TOKENS
from benchmarks.reporting import Target, result, spread
from data_lake.pack import pack_runs
from flows.places import ROOT

NUM_EPISODES = 3_000_000
EPISODE_STEPS = (100, 567)  # 1,000 million samples in all, within a per mille
ROWS_PER_STEP = 64
LOOKUPS = 500
ROUNDS = 5
PACKAGES = ("numpy", "pylance", "pyarrow")


def main(lake: Path, home: Path) -> dict[str, Any]:
    """`bench lake-scale`."""
    from benchmarks import lake_rows  # not for the rounds: Lance would count in their memory

    rounds = [
        json.loads(subprocess.check_output([sys.executable, "-m", "benchmarks.lake_scale"], text=True, cwd=ROOT))
        for _ in range(ROUNDS)
    ]
    rows = lake_rows.measure(home)
    assert len({one["work"] for one in rounds}) == 1, "every round looked up the same samples"
    lookups = [lookup for one in rounds for lookup in one["lookup_ms"]]
    plans = [one["plan_s"] for one in rounds]
    told = f"median of {len(lookups)} steps of {ROWS_PER_STEP} rows anywhere in three epochs"
    targets = [
        Target(name="plan_s", value=statistics.median(plans), target=2, op="<="),
        Target(name="lookup_ms", value=statistics.median(lookups), target=1, op="<=", note=told),
        Target(name="rss_mb", value=max(one["rss_mb"] for one in rounds), target=200, op="<="),
        *lake_rows.targets(rows),
    ]
    figures = {
        "rows_in_the_lake": rows,
        "plan_s": spread(plans),
        "lookup_ms": {**spread(lookups), "p99": float(np.quantile(lookups, 0.99))},
        "samples": rounds[0]["samples"],
        "rows": rounds[0]["rows"],
        "fill": rounds[0]["fill"],
    }
    return result("lake-scale", targets, {"vlaloop": figures}, {"plan": rounds, "rows": rows}, PACKAGES)


def _round() -> dict[str, Any]:
    """Seconds of planning, milliseconds of each lookup, the peak of memory, and a digest of what was looked up."""
    random = np.random.default_rng(0)
    counts_U = random.integers(*EPISODE_STEPS, NUM_EPISODES, np.int32)
    lengths_U = (random.integers(1, 4, NUM_EPISODES, np.int32) * TOKENS.tokens_per_view).astype(np.int32)
    lengths_U += random.integers(20, 201, NUM_EPISODES, np.int32) + TOKENS.action_horizon
    firsts_U = np.cumsum(counts_U, dtype=np.int64) - counts_U
    started = time.perf_counter()
    packing = pack_runs(firsts_U, counts_U, lengths_U, capacity=CAPACITY, tokens=TOKENS)
    plan_s = time.perf_counter() - started
    samples, work = [], 0
    for step in random.integers(0, 3 * packing.num_rows // ROWS_PER_STEP, LOOKUPS).tolist():
        started = time.perf_counter()
        ids_N, _, _ = packing.members(0, step, ROWS_PER_STEP)
        samples.append((time.perf_counter() - started) * 1e3)
        work = (work * 31 + int(ids_N.sum())) % 2**61
    return {
        "plan_s": plan_s,
        "lookup_ms": samples,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "work": work,
        "samples": packing.num_samples,
        "rows": packing.num_rows,
        "fill": packing.fill_rate,
    }


if __name__ == "__main__":
    print(json.dumps(_round()))
