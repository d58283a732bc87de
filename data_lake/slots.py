"""Cameras of a data set into the slots that a policy has for views: declared by name, never guessed."""

from collections.abc import Sequence
from dataclasses import replace

from data_lake.specs import CameraSlot
from data_lake.view import DatasetView
from errors import UserError


def in_slots(view: DatasetView, cameras: Sequence[CameraSlot]) -> DatasetView:
    """`view` with its cameras under the names of their slots. A camera whose name is a slot of another one is left out.

    Raises UserError LAKE-213 for a camera that no episode has, or a slot that is filled twice.
    """
    slot_of = {each.camera: each.slot for each in cameras if each.camera is not None}
    slots = [each.slot for each in cameras]
    known = {span.view for episode in view.episodes for span in episode.spans}
    unknown = sorted(set(slot_of) - known)
    twice = sorted({slot for slot in slots if slots.count(slot) > 1})
    if unknown or twice:
        raise UserError(
            "LAKE-213",
            f"no episode has a camera {unknown[0]!r}" if unknown else f"the slot {twice[0]!r} is given twice",
            where="preprocess.cameras",
            next_step=f"cameras of {view.dataset}: {', '.join(sorted(known)) or 'none'}",
        )
    episodes = [
        replace(
            episode,
            spans=tuple(
                replace(span, view=slot_of.get(span.view, span.view))
                for span in episode.spans
                if span.view in slot_of or span.view not in slots
            ),
        )
        for episode in view.episodes
    ]
    return replace(view, episodes=tuple(episodes))
