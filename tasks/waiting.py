"""Whether a training run was held up by its input, and what would change that."""

import json
from collections.abc import Sequence
from typing import Any

from data_lake.files import LakePath, read_bytes

INPUT_BOUND = 0.05  # share of the time of steps spent waiting for samples
WORTH_S = 5.0  # less than this in a whole run is nobody's concern


def waited(lines: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """(seconds that steps waited for samples, share of their time), the first step left out, which always waits;
    (0, 0) where nothing was measured."""
    known = [line for line in lines[1:] if line["input_wait"] is not None]
    steps_s = [line["num_samples"] / line["samples_per_s"] for line in known]
    waited_s = sum(line["input_wait"] * step_s for line, step_s in zip(known, steps_s, strict=True))
    return waited_s, waited_s / sum(steps_s) if steps_s else 0.0


def input_bound(lines: Sequence[dict[str, Any]], preprocessed: LakePath, packed: LakePath) -> str:
    """One line that says so and what to change, or "" when at most INPUT_BOUND, or WORTH_S, was waited."""
    waited_s, share = waited(lines)
    if share <= INPUT_BOUND or waited_s <= WORTH_S:
        return ""
    advice = []
    if "video" in json.loads(read_bytes(preprocessed / "card.json")):
        advice.append("set preprocess.images to decoded (the pictures are decoded while training waits)")
        if "shuffle" not in json.loads(read_bytes(packed / "packed.json")):
            advice.append("or pack.shuffle to spans (each key frame is then decoded once for its neighbours)")
    advice.append("give the job more CPU cores" if not advice else "or give the job more CPU cores")
    return f"input-bound: {100 * share:.0f} % of the time waits for samples; {', '.join(advice)}"
