"""What preprocessing is asked for, and what must hold before it begins."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from data_lake.specs import CameraSlot, Tier
from data_lake.view import DatasetView
from errors import UserError
from lookup import lookup

TRAIN, HELD_OUT = 0, 1
IMAGE_BYTES = 32 * 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelFunctions:
    """What a model brings, by dotted name (see `model_core.transforms`).

    prepare_view: (image, inputs) -> image. fit_tokenizer: (instructions, inputs) -> the card's entry.
    text_tokens: (instruction, proprio_P, card, folder) -> ids. robot: (layout) -> robot.
    training_actions: (actions_THA, proprio_TP, robot) -> actions_THA as trained.
    """

    prepare_view: str
    fit_tokenizer: str
    text_tokens: str
    robot: str
    training_actions: str

    def get(self, name: str) -> Callable[..., Any]:
        return lookup({}, getattr(self, name), "function")


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What to make. inputs: the policy's InputSpec as a dict. layout: the embodiment as a dict. cameras: which of
    them fills which view, where that was declared. images: as in PreprocessSpec.

    image_bytes (prepared images that a worker holds at a time) changes how, never what.
    """

    sample_stride: int
    heldout_episodes: tuple[int, ...]
    inputs: dict[str, Any]
    layout: dict[str, Any]
    functions: ModelFunctions
    cameras: tuple[CameraSlot, ...] = ()
    images: Tier = "decoded"
    image_bytes: int = IMAGE_BYTES


def check_request(view: DatasetView, request: Request) -> None:
    """Refuse what would train on something else than it says."""
    held = view.meaning["render_every"]
    if held > 1 and request.sample_stride % held:
        raise UserError(
            "PREP-001",
            f"sample_stride {request.sample_stride} meets frames whose image is held from an earlier one "
            f"(a new image comes every {held} frames)",
            where="preprocess.sample_stride",
            next_step=f"set it to a multiple of {held}",
        )
    _check_views(view, request)
    known = {episode.source_episode for episode in view.episodes}
    unknown = [number for number in request.heldout_episodes if number not in known]
    if unknown or known <= set(request.heldout_episodes):
        what = f"held-out episode {unknown[0]} is not in the data" if unknown else "every episode is held out"
        raise UserError(
            "PREP-004",
            what,
            where="preprocess.heldout_episodes",
            next_step="choose among the episodes that were ingested; quarantined ones are not there",
        )
    if view.meaning["action_mode"] is None and any(request.layout["delta_mask"]):
        raise UserError(
            "PREP-005",
            f"nothing says whether the actions are absolute, and {view.embodiment} is learnt as changes of the state",
            where="ingest.read.action_mode",
            next_step="set it to absolute or delta",
        )
    if view.meaning["action_mode"] == "delta" and any(request.layout["delta_mask"]):
        raise UserError(
            "PREP-005",
            f"the actions are changes already, and {view.embodiment} would subtract the state once more",
            where="ingest.read.action_mode",
            next_step="declare the embodiment's delta_mask as all False for this data, or action_mode absolute",
        )


def _check_views(view: DatasetView, request: Request) -> None:
    """PREP-003 unless the policy is shown views, each once, that some episode has."""
    named = request.inputs["views"]
    if len(set(named)) != (len(named) or 1):
        raise UserError(
            "PREP-003",
            "the policy is shown no view" if not named else f"a view is named twice: {', '.join(named)}",
            where="policy.inputs.views",
            next_step="name each camera slot once, and at least one",
        )
    cameras = {span.view for episode in view.episodes for span in episode.spans}
    none = {each.slot for each in request.cameras if each.camera is None}
    absent = [name for name in request.inputs["views"] if name not in cameras | none]
    if absent:
        raise UserError(
            "PREP-003",
            f"no episode has a view {absent[0]!r}",
            where="policy.inputs.views",
            next_step=f"the data have: {', '.join(sorted(cameras)) or 'no view at all'}; preprocess.cameras maps them",
        )
