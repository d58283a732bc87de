"""What pixels and numbers of a source mean: as its files say, else as the recipe declares; never guessed."""

from typing import Any

from data_lake.sources.episode import SourceCard, asked, contradicted
from data_lake.specs import ReadSpec

MEANT = ("colour_order", "image_orientation", "action_mode", "fps", "render_every", "instruction_source")
"""What enters the identity of episodes; where the pixels came from is told beside it."""

CHOICES = {"colour_order": "rgb or bgr", "image_orientation": "upright, upside_down or flipped"}


def meaning_of(card: SourceCard, read: ReadSpec) -> dict[str, Any]:
    """Raises UserError LAKE-035 for what nobody says and training could not do without, LAKE-036 where the
    recorder's own words and the recipe differ."""
    said = {name: _said(name, card, read) for name in (*CHOICES, "action_mode")}
    for name, choices in CHOICES.items():
        if said[name] is None and card.cameras:
            raise asked(card.root, name, f"what {name} its pictures have", choices)
    declared = card.declared
    return {
        **said,
        "fps": card.fps,
        "render_every": declared.get("render_every", 1),
        "instruction_source": card.instruction_source,
        "scene": declared.get("scene"),
        "simulator": declared.get("simulator"),
        "seeds": declared.get("seeds"),
        "grippers": "1 is open" if read.grippers else None,
    }


def _said(name: str, card: SourceCard, read: ReadSpec) -> Any:
    """The recorder's word, else the recipe's, else the format's."""
    recorded, declared = card.declared.get(name), getattr(read, name)
    if None not in (recorded, declared) and recorded != declared:
        raise contradicted(card.root, name, recorded, declared)
    return next((value for value in (recorded, declared, card.by_format.get(name)) if value is not None), None)
