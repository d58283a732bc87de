"""The learning rate of a step: linear warm-up, then a cosine down to zero."""

import math


def learning_rate(step: int, *, peak: float, warmup_steps: int, num_steps: int) -> float:
    """Of step `step` (from 0). The first step has peak/(warmup_steps+1), step `warmup_steps` the peak."""
    if step < warmup_steps:
        return peak * (step + 1) / (warmup_steps + 1)
    done = (step - warmup_steps) / max(1, num_steps - warmup_steps)
    return 0.5 * peak * (1.0 + math.cos(math.pi * min(1.0, done)))
