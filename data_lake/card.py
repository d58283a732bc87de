"""The card: what training and serving must know beside the samples (inputs, meaning, statistics, vocabulary)."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from data_lake.request import TRAIN, Request
from data_lake.view import DatasetView


def make_card(
    view: DatasetView, request: Request, stats: dict[str, Any], splits: Sequence[int], out: Path
) -> dict[str, Any]:
    """What training and serving need beside the samples; the vocabulary is of training episodes only, as `stats` is.

    A tokenizer that is a file is copied to `out`.
    """
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
        "stats": stats,
        "tokenizer": tokenizer,
        "instructions": list(dict.fromkeys(episode.instruction for episode in view.episodes)),
        "proprio_dim": len(stats["proprio"]["mean"]),
        "action_dim": len(stats["action"]["mean"]),
        "control_hz": view.meaning["fps"],
    }
