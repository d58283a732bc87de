"""Whether a training run was held up by its input, and what would change that."""

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

from data_lake.decode_pool import RAY
from data_lake.files import read_bytes
from data_lake.refs import PackedRef, PreprocessedRef
from tasks.runtime import Runtime

INPUT_BOUND = 0.05  # share of the time of steps spent waiting for samples
WORTH_S = 5.0  # less than this in a whole run is nobody's concern
ALL_BUSY = 0.8  # share of the machine's cores in use; what is left are moments in which threads wait for one another


def waited(lines: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """(seconds that steps waited for samples, share of their time), the first step left out, which always waits;
    (0, 0) where nothing was measured."""
    known = [line for line in lines[1:] if line["input_wait"] is not None]
    steps_s = [line["num_samples"] / line["samples_per_s"] for line in known]
    waited_s = sum(line["input_wait"] * step_s for line, step_s in zip(known, steps_s, strict=True))
    return waited_s, waited_s / sum(steps_s) if steps_s else 0.0


def input_bound(
    lines: Iterable[dict[str, Any]], preprocessed: PreprocessedRef, packed: PackedRef, runtime: Runtime
) -> str:
    """One line that says so and what to change, or "" when at most INPUT_BOUND, or WORTH_S, was waited."""
    measured = list(lines)
    waited_s, share = waited(measured)
    if share <= INPUT_BOUND or waited_s <= WORTH_S:
        return ""
    advice = []
    if "video" in json.loads(read_bytes(runtime.path(preprocessed.uri) / "card.json")):
        advice.append("set preprocess.images to decoded (the pictures are decoded while training waits)")
        if "shuffle" not in json.loads(read_bytes(runtime.path(packed.uri) / "packed.json")):
            advice.append("pack.shuffle to spans (each key frame is then decoded once for its neighbours)")
    advice.append(_where(measured, runtime))
    return f"input-bound: {100 * share:.0f} % of the time waits for samples; {', or '.join(advice)}"


def _where(lines: Sequence[dict[str, Any]], runtime: Runtime) -> str:
    """What to change of where the run is, from which cores were in use."""
    if runtime.decode == RAY:
        return "give the Ray cluster more CPU cores"
    used = [line["cores"] for line in lines if line.get("cores") is not None]  # none in lines of an earlier release
    busy = sum(used) / len(used) * runtime.processes / (os.cpu_count() or 1) if used else 1.0
    if busy < ALL_BUSY:
        return f"bring the lake nearer, or to faster storage ({100 * (1 - busy):.0f} % of the CPU cores were idle)"
    return "give the job more CPU cores, or in the profile those of a cluster: decode: ray and its ray_address"
