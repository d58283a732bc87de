"""The card: what training and serving must know beside the samples (inputs, meaning, statistics, vocabulary)."""

import shutil
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from data_lake.request import Request
from data_lake.statistics import Statistics
from data_lake.steps import Steps
from data_lake.view import DatasetView

CHUNK_OFFSETS = 16  # how far ahead of its chunk's start an action counts in the statistics of changes
TRAIN, HELD_OUT = 0, 1


def make_card(view: DatasetView, request: Request, steps: Steps, splits: list[int], out: Path) -> dict[str, Any]:
    """What training and serving need beside the samples; statistics and vocabulary are of training episodes only."""
    learnt = [episode for episode, split in zip(view.episodes, splits, strict=True) if split == TRAIN]
    tokenizer = request.functions.get("fit_tokenizer")(sorted({e.instruction for e in learnt}), request.inputs)
    if "file" in tokenizer:
        shutil.copyfile(request.inputs["sentencepiece_model"], out / tokenizer["file"])
    return {
        "inputs": request.inputs,
        "embodiment": view.embodiment,
        "embodiment_layout": request.layout,
        # Samples are upright RGB whatever the source was; serving must give the same.
        "meaning": view.meaning | {"colour_order": "rgb", "image_orientation": "upright"},
        "declared": view.meaning,
        "cameras": {each.slot: each.camera for each in request.cameras},
        "stats": statistics(view, request, steps, splits),
        "tokenizer": tokenizer,
        "instructions": list(dict.fromkeys(episode.instruction for episode in view.episodes)),
        "proprio_dim": steps.proprio_TP.shape[1],
        "action_dim": steps.actions_TA.shape[1],
        "control_hz": view.meaning["fps"],
    }


def statistics(view: DatasetView, request: Request, steps: Steps, splits: list[int]) -> dict[str, Any]:
    """Of proprio and of actions as trained, over training episodes."""
    starts = zip(view.episodes, steps.starts_E, splits, strict=True)
    spans = [slice(start, start + episode.length) for episode, start, split in starts if split == TRAIN]
    pieces = ((steps.proprio_TP[span], steps.actions_TA[span]) for span in spans)
    robot = request.functions.get("robot")(request.layout)
    as_trained = partial(request.functions.get("training_actions"), robot=robot)
    return statistics_of(pieces, request.layout, as_trained)


def statistics_of(
    episodes: Iterable[tuple[np.ndarray, np.ndarray]], layout: dict[str, Any], as_trained: Callable[..., np.ndarray]
) -> dict[str, Any]:
    """Over episodes, each as proprio (T, P) and actions (T, A).

    A dimension that is learnt as it is counts once per step. One that is learnt as a change counts for every
    step with each of the CHUNK_OFFSETS steps from it on, as it is met inside action chunks.
    """
    is_delta_A = np.asarray(layout["delta_mask"], bool)
    found: dict[str, Statistics] = {}
    for proprio_TP, actions_TA in episodes:
        length = len(proprio_TP)
        pieces = {"proprio": proprio_TP, "action": as_trained(actions_TA[:, None], proprio_TP)[:, 0]}
        if is_delta_A.any():
            ahead = [
                as_trained(actions_TA[h:, None], proprio_TP[: length - h])[:, 0]
                for h in range(min(CHUNK_OFFSETS, length))
            ]
            pieces["ahead"] = np.concatenate(ahead)
        for name, rows in pieces.items():
            piece = Statistics.of(rows)
            found[name] = found[name].merged(piece) if name in found else piece
    stats = {name: summary.as_json() for name, summary in found.items()}
    ahead = stats.pop("ahead", stats["action"])
    stats["action"] = {
        name: value if name == "count" else np.where(is_delta_A, ahead[name], value).tolist()
        for name, value in stats["action"].items()
    }
    return stats
