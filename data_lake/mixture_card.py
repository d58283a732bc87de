"""The card of a mixture: statistics per robot over all of its components, before anything is padded; one vocabulary."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from data_lake.learnt import statistics_of
from data_lake.request import TRAIN
from data_lake.samples import SampleTable
from errors import UserError

SAME_MOTION = ("fps", "action_mode", "grippers")  # of one robot's data, or its numbers mean different things
OF_A_ROBOT = ("embodiment", "embodiment_layout", "meaning", "declared", "proprio_dim", "action_dim", "control_hz")

AsTrained = Callable[[dict[str, Any]], Callable[..., np.ndarray]]
"""From a robot's layout to the function that gives its actions as they are trained."""


def mixed_card(
    tables: Sequence[SampleTable], names: Sequence[str], tokenizer: dict[str, Any], as_trained: AsTrained
) -> dict[str, Any]:
    """What training and serving must know of these components. Of one robot, it is a card like any other; of several,
    `embodiment` is None and each robot's part is under `robots`.

    Raises UserError PACK-011 for components that cannot be trained on together, naming both.
    """
    cards = [table.card for table in tables]
    _alike(cards, names, "policy.inputs", lambda card: card["inputs"])
    robots = {card["embodiment"]: card for card in reversed(cards)}
    parts = {robot: _robot(robot, tables, names, as_trained) for robot in robots}
    shared: dict[str, Any] = {
        "inputs": cards[0]["inputs"],
        "tokenizer": tokenizer,
        "instructions": [text for card in cards for text in card["instructions"]],
        "components": [
            {"name": name, **{key: card[key] for key in ("embodiment", "cameras", "declared")}}
            for name, card in zip(names, cards, strict=True)
        ],
    }
    if len(parts) == 1:
        return parts[cards[0]["embodiment"]] | shared
    widest = {key: max(card[key] for card in cards) for key in ("proprio_dim", "action_dim")}
    return {"embodiment": None, "robots": parts, **widest, **shared}


def _robot(robot: str, tables: Sequence[SampleTable], names: Sequence[str], as_trained: AsTrained) -> dict[str, Any]:
    """The part of one robot: of all its components together."""
    own = [table for table in tables if table.card["embodiment"] == robot]
    own_names = [name for name, table in zip(names, tables, strict=True) if table.card["embodiment"] == robot]
    cards = [table.card for table in own]
    _alike(cards, own_names, "the layout of their robot", lambda card: card["embodiment_layout"])
    _alike(cards, own_names, ", ".join(SAME_MOTION), lambda card: [card["declared"].get(key) for key in SAME_MOTION])
    part = {key: cards[0][key] for key in OF_A_ROBOT}
    if len(own) == 1:
        return part | {"stats": cards[0]["stats"]}
    if cards[0]["inputs"]["state"] == "text":
        raise UserError(
            "PACK-011",
            "the state as text is written in bins of each data set's own range, which are not the same",
            where=f"policy.inputs.state · {', '.join(own_names)}",
            next_step="set policy.inputs.state to token",
        )
    layout = cards[0]["embodiment_layout"]
    episodes = (episode for table in own for episode in training_episodes(table))
    seeds = [card["meaning"].get("seeds") or {} for card in cards]
    shown = {task: sorted({s for each in seeds for s in each.get(task, ())}) for each in seeds for task in each}
    meaning = part["meaning"] | {"seeds": shown or None}
    return part | {"meaning": meaning, "stats": statistics_of(episodes, layout, as_trained(layout))}


def training_episodes(table: SampleTable) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Proprio (T, P) and actions (T, A) of each training episode."""
    is_start_N = (table.column("split") == TRAIN) & (table.column("frame_index") == 0)
    first, length = table.column("first_step")[is_start_N], table.column("num_steps")[is_start_N]
    proprio, actions = table.step_columns("proprio", "action")
    for start, end in zip(first, first + length, strict=True):
        yield proprio[start:end], actions[start:end]


def _alike(cards: Sequence[Any], names: Sequence[str], what: str, of: Callable[[Any], Any]) -> None:
    for card, name in zip(cards[1:], names[1:], strict=True):
        if of(card) != of(cards[0]):
            raise UserError(
                "PACK-011",
                f"components of the mixture differ in {what}",
                where=f"{names[0]}: {of(cards[0])!r:.120} · {name}: {of(card)!r:.120}",
                next_step="declare the same for both (ingest.read, preprocess), or leave one of them out",
            )
