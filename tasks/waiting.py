"""Whether a training run was held up by its input, and what would change that."""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

INPUT_BOUND = 0.05  # share of the time of steps spent waiting for samples


def input_wait(lines: Sequence[dict[str, Any]]) -> float:
    """Mean share of a step's time that waited for samples, the first step left out, which always waits; 0 where
    nothing was measured."""
    waits = [line["input_wait"] for line in lines[1:] if line["input_wait"] is not None]
    return statistics.fmean(waits) if waits else 0.0


def input_bound(lines: Sequence[dict[str, Any]], preprocessed: Path, packed: Path) -> str:
    """One line that says so and what to change, or "" when at most INPUT_BOUND was waited."""
    share = input_wait(lines)
    if share <= INPUT_BOUND:
        return ""
    advice = []
    if "video" in json.loads((preprocessed / "card.json").read_text()):
        advice.append("set preprocess.images to decoded (the pictures are decoded while training waits)")
        if "shuffle" not in json.loads((packed / "packed.json").read_text()):
            advice.append("or pack.shuffle to spans (each key frame is then decoded once for its neighbours)")
    advice.append("give the job more CPU cores" if not advice else "or give the job more CPU cores")
    return f"input-bound: {100 * share:.0f} % of the time waits for samples; {', '.join(advice)}"
