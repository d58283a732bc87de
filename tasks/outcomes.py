"""From episodes to a verdict: counts per task, Wilson intervals, safety figures, and which episodes to film."""

import math
from collections.abc import Sequence
from typing import Any

from data_lake.refs import TaskResult
from model_core.specs import EvaluateSpec

Z95 = 1.959964  # two-sided 95 % of the normal distribution
EVENTS = ("collisions", "limit_hits", "non_finite")

EpisodeResult = dict[str, Any]


def wilson(k: int, n: int) -> tuple[float, float]:
    """95 % score interval of a success rate (E. B. Wilson, 1927). (0, 1) without episodes."""
    if n == 0:
        return 0.0, 1.0
    rate, z2 = k / n, Z95**2
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * math.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def merged(spec: EvaluateSpec, blocks: Sequence[tuple[int, list[EpisodeResult]]]) -> list[EpisodeResult]:
    """Episodes of all blocks, each (task, seed) of the suite exactly once, by task and seed.

    Raises RuntimeError naming what is missing, double or foreign.
    """
    found: dict[tuple[int, int], EpisodeResult] = {}
    for task, episodes in blocks:
        for episode in episodes:
            key = (task, episode["seed"])
            if key in found:
                raise RuntimeError(f"task {task} seed {episode['seed']} came twice")
            named = {"task": spec.tasks[task].name, "instruction": spec.tasks[task].instruction}
            found[key] = {**named, "task_index": task, **episode}
    wanted = [(task, seed) for task in range(len(spec.tasks)) for seed in seeds_of(spec)]
    if set(found) != set(wanted):
        raise RuntimeError(f"episodes missing {set(wanted) - set(found)}, foreign {set(found) - set(wanted)}")
    return [found[key] for key in wanted]


def seeds_of(spec: EvaluateSpec) -> range:
    return range(spec.first_seed, spec.first_seed + spec.episodes_per_task)


def task_results(spec: EvaluateSpec, episodes: Sequence[EpisodeResult], control_hz: float) -> tuple[TaskResult, ...]:
    """One result per task of the suite; `seconds` is the mean simulated time of an episode."""
    results = []
    for index, task in enumerate(spec.tasks):
        own = [episode for episode in episodes if episode["task_index"] == index]
        k = sum(episode["success"] for episode in own)
        low, high = wilson(k, len(own))
        results.append(
            TaskResult(
                task=task.name,
                n=len(own),
                k=k,
                safe=sum(episode["safe"] for episode in own),
                low=low,
                high=high,
                seconds=sum(episode["steps"] for episode in own) / max(1, len(own)) / control_hz,
            )
        )
    return tuple(results)


def safety(episodes: Sequence[EpisodeResult]) -> dict[str, dict[str, int]]:
    """Per kind of event: in how many episodes it happened, and in how many control steps altogether."""
    return {
        kind: {
            "episodes": sum(episode[kind] > 0 for episode in episodes),
            "steps": sum(episode[kind] for episode in episodes),
        }
        for kind in EVENTS
    }


def to_film(episodes: Sequence[EpisodeResult], num_videos: int) -> list[EpisodeResult]:
    """Up to num_videos failures, then as many successes, one task after another so that each gets its turn."""
    chosen: list[EpisodeResult] = []
    for success in (False, True):
        turns: dict[int, int] = {}
        ranked = []
        for episode in episodes:
            if episode["success"] is success:
                turns[episode["task_index"]] = turns.get(episode["task_index"], 0) + 1
                ranked.append((turns[episode["task_index"]], episode["task_index"], episode))
        ranked.sort(key=lambda entry: entry[:2])
        chosen += [episode for _, _, episode in ranked[:num_videos]]
    return chosen
