"""Statistics of what a policy learns from: of training episodes' rows alone, kept by group of blocks, then merged.

Groups follow from the view, never from who worked when, so the same view has the same statistics, bit for bit.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from data_lake.blocks import Group
from data_lake.files import put_if_absent
from data_lake.prepare import STEPS, Workshop
from data_lake.request import HELD_OUT, Request
from data_lake.sketches import Summary
from data_lake.statistics import Statistics
from data_lake.steps import Steps, steps_of_rows
from errors import UserError

CHUNK_OFFSETS = 16  # how far ahead of its chunk's start an action counts in the statistics of changes
EXACT_NUMBERS = 8_000_000  # as many are taken into memory for exact quantiles; beyond, sketches answer


def summary_file(key: str) -> str:
    """The file with a group's summaries, below the stage's output."""
    return f"statistics/{key}.json"


def group_json(group: Group, first_step: int) -> str:
    """A group as text for another process. first_step: its first row of steps.lance."""
    return json.dumps({"key": group.key, "first": first_step, "lengths": group.lengths, "splits": group.splits})


def summarise_group(workshop_json: str, group_text: str) -> None:
    """Put the summaries of a group's training episodes beside the steps that they are of."""
    workshop, group = Workshop.loads(workshop_json), json.loads(group_text)
    out = Path(workshop.out)
    steps = steps_of_rows(str(out / STEPS), group["first"], group["lengths"])
    rows = learnt_of(steps, group["splits"], workshop.request)
    told = {name: Summary.of(pieces).as_json() for name, pieces in rows.items()}
    put_if_absent(out / summary_file(group["key"]), json.dumps(told).encode())


def read_summaries(out: Path, groups: Iterable[Group]) -> dict[str, Summary]:
    """Of all groups together, by what they are of."""
    found: dict[str, list[Summary]] = {}
    for group in groups:
        for name, told in json.loads((out / summary_file(group.key)).read_bytes()).items():
            found.setdefault(name, []).append(Summary.from_json(told))
    return {name: first.merged(others) for name, (first, *others) in found.items()}


def learnt_of(steps: Sequence[Steps], splits: Sequence[int], request: Request) -> dict[str, list[np.ndarray]]:
    """`learnt_rows` of the training episodes among these."""
    robot = request.functions.get("robot")(request.layout)
    as_trained = partial(request.functions.get("training_actions"), robot=robot)
    pairs = zip(steps, splits, strict=True)
    episodes = ((each.proprio_TP, each.actions_TA) for each, split in pairs if split != HELD_OUT)
    return learnt_rows(episodes, request.layout, as_trained)


def learnt_rows(
    episodes: Iterable[tuple[np.ndarray, np.ndarray]], layout: dict[str, Any], as_trained: Callable[..., np.ndarray]
) -> dict[str, list[np.ndarray]]:
    """Rows of episodes, each as proprio (T, P) and actions (T, A), an array each: `proprio`, `action` as trained and,
    where some of it is learnt as a change, `ahead`: every step with each of the CHUNK_OFFSETS steps from it on, as it
    is met inside chunks."""
    found: dict[str, list[np.ndarray]] = {}
    for proprio_TP, actions_TA in episodes:
        found.setdefault("proprio", []).append(proprio_TP)
        found.setdefault("action", []).append(as_trained(actions_TA[:, None], proprio_TP)[:, 0])
        if any(layout["delta_mask"]):
            length = len(proprio_TP)
            ahead = [
                as_trained(actions_TA[h:, None], proprio_TP[: length - h])[:, 0]
                for h in range(min(CHUNK_OFFSETS, length))
            ]
            found.setdefault("ahead", []).append(np.concatenate(ahead))
    return found


def is_small(summaries: dict[str, Summary]) -> bool:
    """Whether all rows fit into memory, and quantiles are therefore those of the rows themselves."""
    return sum(each.moments.count * len(each.sketches) for each in summaries.values()) <= EXACT_NUMBERS


def statistics_json(
    summaries: dict[str, Summary], rows: dict[str, list[np.ndarray]] | None, layout: dict[str, Any]
) -> dict[str, Any]:
    """The card's statistics of proprio and of actions as trained. rows: all of them, where they are few.

    A dimension that is learnt as it is counts once per step. One that is learnt as a change counts `ahead`. Raises
    UserError LAKE-232 where a statistic is not finite: nothing can be learnt by it.
    """
    if rows is not None:
        stats: dict[str, Any] = {
            name: Statistics(moments=summaries[name].moments, pieces=tuple(pieces)).as_json()
            for name, pieces in rows.items()
        }
    else:
        stats = {name: summary.statistics_json() for name, summary in summaries.items()}
    ahead = stats.pop("ahead", stats["action"])
    is_delta_A = np.asarray(layout["delta_mask"], bool)
    stats["action"] = {
        name: value if name == "count" else np.where(is_delta_A, ahead[name], value).tolist()
        for name, value in stats["action"].items()
    }
    _ensure_finite(stats)
    return stats


def _ensure_finite(stats: dict[str, dict[str, Any]]) -> None:
    for column, statistics in stats.items():
        for name, value in statistics.items():
            wrong_D = np.flatnonzero(~np.isfinite(np.atleast_1d(value)))
            if len(wrong_D):
                raise UserError(
                    "LAKE-232",
                    f"statistics are not finite: the {name} of {column}[{wrong_D[0]}] is "
                    f"{np.atleast_1d(value)[wrong_D[0]]}",
                    where="training episodes of the view",
                    done="no statistics were written",
                    next_step="./vlaloop doctor DATASET names the rows that are not finite; leave their episodes out",
                )


def statistics_of(
    episodes: Iterable[tuple[np.ndarray, np.ndarray]], layout: dict[str, Any], as_trained: Callable[..., np.ndarray]
) -> dict[str, Any]:
    """As `statistics_json`, of episodes that are in memory: each as proprio (T, P) and actions (T, A)."""
    rows = learnt_rows(episodes, layout, as_trained)
    summaries = {name: Summary.of(pieces) for name, pieces in rows.items()}
    return statistics_json(summaries, rows if is_small(summaries) else None, layout)
