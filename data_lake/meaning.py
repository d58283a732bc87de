"""What pixels and numbers of a source mean: as its files say, else as the recipe declares; never guessed."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from functools import partial
from typing import Any

from data_lake.sources.episode import SourceCard, ask_together, asked, contradicted
from data_lake.specs import ReadSpec
from errors import UserError

MEANT = (
    "colour_order",
    "image_orientation",
    "action_mode",
    "fps",
    "render_every",
    "instruction_source",
    "grippers",
)
"""What enters the identity of episodes; where the pixels came from is told beside it."""

MEANT_WHERE_SAID = ("clock", "rotations", "padding", "state_units", "action_units")
"""Enters it too, where anybody says it."""

RATE_LIMIT = 1001  # denominators of the rates that cameras have

CHOICES = {"colour_order": "rgb or bgr", "image_orientation": "upright, upside_down or flipped"}


def meaning_of(card: SourceCard, read: ReadSpec) -> dict[str, Any]:
    """Raises UserError LAKE-035 for what nobody says and training could not do without, LAKE-036 where the
    recorder's own words and the recipe differ."""
    said = {name: _said(name, card, read) for name in (*CHOICES, "action_mode")}
    ask_together(*(partial(_required, name, said[name], card) for name in CHOICES))
    declared = card.declared
    return {
        **said,
        "fps": card.fps,
        "rate": _rational(card.fps),
        "render_every": declared.get("render_every", 1),
        "instruction_source": card.instruction_source,
        "scene": declared.get("scene"),
        "simulator": declared.get("simulator"),
        "seeds": declared.get("seeds"),
        "grippers": "1 is open" if read.grippers else None,
        "clock": read.clock,
        "rotations": [asdict(rotation) for rotation in read.rotations],
        "padding": [{"column": padding.column, "dims": list(padding.dims)} for padding in read.padding],
        "state_units": list(read.state_units),
        "action_units": list(read.action_units),
    }


def _required(name: str, said: Any, card: SourceCard) -> None:
    if said is None and card.cameras:
        choices = CHOICES[name]
        raise asked(card.root, name, f"what {name} its pictures have", choices, choices.split()[0].rstrip(","))


def _rational(rate_hz: float) -> str | None:
    """As people write it; None for a source that holds nothing with a rate."""
    return str(Fraction(rate_hz).limit_denominator(RATE_LIMIT)) if math.isfinite(rate_hz) else None


def meant(meaning: Mapping[str, Any]) -> dict[str, Any]:
    """Of `meaning` what enters the identity of episodes."""
    said = {name: meaning[name] for name in MEANT_WHERE_SAID if meaning.get(name)}
    return {name: meaning.get(name) for name in MEANT} | said


def _said(name: str, card: SourceCard, read: ReadSpec) -> Any:
    """The recorder's word, else the recipe's, else the format's."""
    recorded, declared = card.declared.get(name), getattr(read, name)
    if None not in (recorded, declared) and recorded != declared:
        raise contradicted(card.root, name, recorded, declared)
    return next((value for value in (recorded, declared, card.by_format.get(name)) if value is not None), None)


def shared_meaning(dataset: str, episodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What all these rows of a data set's episodes table mean. Raises UserError LAKE-006 where they differ."""
    meanings = {text: json.loads(text) for text in dict.fromkeys(episode["meaning"] for episode in episodes)}
    first = meanings[episodes[0]["meaning"]]
    ours = meant(first)
    differing: dict[str, list[str]] = {}
    for text, meaning in meanings.items():
        theirs = meant(meaning)
        if names := [name for name in (*MEANT, *MEANT_WHERE_SAID) if ours.get(name) != theirs.get(name)]:
            differing[text] = names
    if differing:
        odd = next(episode for episode in episodes if episode["meaning"] in differing)
        raise UserError(
            "LAKE-006",
            f"episodes of the data set do not agree on {', '.join(differing[odd['meaning']])}",
            where=f"{dataset} · episode {odd['episode_index']} from {odd['source']}",
            done="nothing was written",
            next_step="keep sources that mean different things in data sets of their own",
        )
    return first
