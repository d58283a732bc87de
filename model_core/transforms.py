"""What is done to images, text, proprio and actions on their way into a policy, and back: numpy and SciPy.

Preprocessing, training and serving call the same functions, so they cannot disagree.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import csr_array

from errors import UserError
from model_core.embodiments import Embodiment, from_layout
from model_core.specs import PolicySpec
from model_core.tokenizers import NUM_STATE_BINS, Tokenizer, fit_tokenizer, open_tokenizer
from model_core.types import Encoded, Observation

__all__ = [
    "InputTransform",
    "Scaling",
    "fit_tokenizer",
    "floored_dims",
    "prepare_view",
    "resize_with_pad",
    "state_bins",
    "text_tokens",
    "tokens_of_sample",
    "training_actions",
    "untrained_actions",
]

GREY = 128
# The smallest range (quantiles) or deviation (mean_std) that is divided by, in the data's units: a joint that
# moves by half a milliradian must not become a target of thousands, and one that never moves becomes 0.
SMALLEST_RANGE = 0.01
SMALLEST_STD = 0.0025
PROPRIO_LIMIT = 10.0  # normalised; a sensor outside of what was ever recorded says no more than this


# --- images -----------------------------------------------------------------------------------------


def prepare_view(image: np.ndarray, inputs: Mapping[str, Any]) -> np.ndarray:
    """One view as the policy gets it: (image_size, image_size, 3) uint8. inputs: an InputSpec as a dict."""
    size = inputs["image_size"]
    if inputs.get("sight", "full") == "grey":
        return np.full((size, size, 3), GREY, np.uint8)
    return resize_with_pad(image, size)


def resize_with_pad(image: np.ndarray, size: int) -> np.ndarray:
    """(height, width, 3) uint8 to (size, size, 3): aspect kept, centred on black, bilinear with antialiasing.

    Raises `UserError` IMAGE-001 for anything but a uint8 RGB image.
    """
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or 0 in image.shape:
        raise UserError("IMAGE-001", f"a view must be (height, width, 3) uint8, not {image.shape} {image.dtype}")
    height, width = image.shape[:2]
    if height == width == size:
        return np.ascontiguousarray(image)
    scale = size / max(height, width)
    new_height, new_width = max(1, round(height * scale)), max(1, round(width * scale))
    rows = _resampling(height, new_height) @ image.reshape(height, -1).astype(np.float32)
    columns = np.ascontiguousarray(rows.reshape(new_height, width, 3).swapaxes(0, 1)).reshape(width, -1)
    resized = np.rint(_resampling(width, new_width) @ columns).clip(0, 255).astype(np.uint8)
    top, left = (size - new_height) // 2, (size - new_width) // 2
    canvas = np.zeros((size, size, 3), np.uint8)
    canvas[top : top + new_height, left : left + new_width] = resized.reshape(new_width, -1, 3).swapaxes(0, 1)
    return canvas


@lru_cache(maxsize=64)
def _resampling(num_in: int, num_out: int) -> csr_array:
    """(num_out, num_in) weights: a triangle around each output pixel's centre, widened when shrinking. Sparse: a dense
    product takes five times as long, and adds up in another order on another processor."""
    ratio = num_in / num_out
    centres = (np.arange(num_out) + 0.5) * ratio - 0.5
    weights = 1.0 - np.abs(np.arange(num_in)[None, :] - centres[:, None]) / max(1.0, ratio)
    weights = np.maximum(weights, 0.0)
    return csr_array((weights / weights.sum(axis=1, keepdims=True)).astype(np.float32))


# --- numbers ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Scaling:
    """normalised = (raw - centre) / span, per dimension; spans have a floor, so that it can be undone."""

    centre: np.ndarray
    span: np.ndarray

    @classmethod
    def of(cls, stats: Mapping[str, Any], mode: Literal["quantile", "mean_std"]) -> Self:
        """From `stats` (`mean`, `std`, `q01`, `q99` per dim). quantile: q01..q99 becomes -1..1.

        Raises `UserError` STATS-001 when the statistics that `mode` needs are absent or not finite.
        """
        low_key, high_key = ("q01", "q99") if mode == "quantile" else ("mean", "std")
        if low_key not in stats or high_key not in stats:
            raise UserError(
                "STATS-001",
                f"normalisation {mode!r} needs {low_key} and {high_key}, which are not there",
                next_step="rebuild preprocess: it computes them from the data",
            )
        low, high = (np.asarray(stats[key], np.float64) for key in (low_key, high_key))
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise UserError("STATS-001", f"{low_key} or {high_key} is not finite", next_step="look for NaN in the rows")
        if mode == "quantile":
            return cls(centre=(low + high) / 2, span=np.maximum(high - low, SMALLEST_RANGE) / 2)
        return cls(centre=low, span=np.maximum(high, SMALLEST_STD))

    def normalise(self, raw: np.ndarray) -> np.ndarray:
        """float32, same shape; the last axis is the dimension."""
        return ((raw - self.centre) / self.span).astype(np.float32)

    def denormalise(self, normalised: np.ndarray) -> np.ndarray:
        """float32, in the data's units."""
        return (normalised * self.span + self.centre).astype(np.float32)


def floored_dims(stats: Mapping[str, Any], mode: Literal["quantile", "mean_std"], names: Sequence[str]) -> list[str]:
    """Names of the dimensions that (nearly) never change, whose span is the floor instead of their own."""
    if mode == "quantile":
        spread, floor = np.asarray(stats["q99"], float) - np.asarray(stats["q01"], float), SMALLEST_RANGE
    else:
        spread, floor = np.asarray(stats["std"], float), SMALLEST_STD
    return [name for name, width in zip(names, spread, strict=True) if width < floor]


def training_actions(actions_HA: np.ndarray, proprio_P: np.ndarray, robot: Embodiment) -> np.ndarray:
    """Raw chunks as they are learnt, (..., H, A) with states (..., P) at their start: where the robot's
    delta_mask says so, the change from that one state; else the value itself."""
    return (actions_HA - _offset(proprio_P, robot)).astype(np.float32)


def untrained_actions(learnt_HA: np.ndarray, proprio_P: np.ndarray, robot: Embodiment) -> np.ndarray:
    """The inverse of `training_actions`: chunks that a robot can execute."""
    return (learnt_HA + _offset(proprio_P, robot)).astype(np.float32)


def _offset(proprio_P: np.ndarray, robot: Embodiment) -> np.ndarray:
    """(..., 1, A): the commanded state where the action is learnt as a change, 0 elsewhere."""
    source = np.maximum(robot.action_from_state, 0)
    return np.where(robot.delta_mask, np.asarray(proprio_P, np.float64)[..., source], 0.0)[..., None, :]


# --- text -------------------------------------------------------------------------------------------


def state_bins(normalised_P: np.ndarray) -> list[int]:
    """Each value in [-1, 1] as one of 256 bins; values outside go to the first and last one.

    π0.5's digitisation, but for values below -1, which get -1 there.
    """
    edges = np.linspace(-1.0, 1.0, NUM_STATE_BINS + 1)[:-1]
    return np.clip(np.digitize(normalised_P, edges) - 1, 0, NUM_STATE_BINS - 1).tolist()


def text_tokens(
    instruction: str, proprio_P: np.ndarray | None, card: Mapping[str, Any], folder: Path | str = "."
) -> list[int]:
    """Token ids of an instruction, and of the raw proprio when the card says that the state is text.

    card needs `inputs`, `tokenizer`, and for state text `stats.proprio` with q01 and q99 (always quantiles, since bins
    need a range). folder: where a tokenizer file lies. Raises `UserError` TEXT-001 for too long an instruction.
    """
    return _encode_text(open_tokenizer(card["tokenizer"], folder), instruction, proprio_P, card)


def _encode_text(
    tokenizer: Tokenizer, instruction: str, proprio_P: np.ndarray | None, card: Mapping[str, Any]
) -> list[int]:
    bins = None
    if card["inputs"]["state"] == "text":
        if proprio_P is None:
            raise UserError("TEXT-005", "the state is part of the text, but no proprio was given")
        bins = state_bins(Scaling.of(card["stats"]["proprio"], "quantile").normalise(proprio_P))
    tokens = tokenizer.encode(instruction, bins)
    limit = card["inputs"]["max_text_tokens"]
    if len(tokens) > limit:
        raise UserError(
            "TEXT-001",
            f"{len(tokens)} text tokens where {limit} are allowed",
            where=repr(instruction),
            next_step="raise policy.inputs.max_text_tokens, or shorten the instruction",
        )
    return tokens


def tokens_of_sample(num_views: int, num_text: int, policy: PolicySpec) -> int:
    """Length of a sample's prefix: views, text, state token."""
    return num_views * policy.tokens_per_view + num_text + (policy.inputs.state == "token")


# --- all of it --------------------------------------------------------------------------------------


class InputTransform:
    """Observations to arrays, arrays to what a policy computes with, actions back to the robot.

    card: what preprocessing found (`inputs`, `embodiment_layout`, `stats`, `tokenizer`); folder: where its
    tokenizer file lies, if there is one.
    """

    def __init__(self, card: Mapping[str, Any], policy: PolicySpec, folder: Path | str = ".") -> None:
        self.card, self.policy = card, policy
        self.robot = from_layout(card["embodiment_layout"])
        self.tokenizer = open_tokenizer(card["tokenizer"], folder)
        self.proprio_scaling = Scaling.of(card["stats"]["proprio"], policy.normalisation)
        self.action_scaling = Scaling.of(card["stats"]["action"], policy.normalisation)

    def encode(self, observations: Sequence[Observation]) -> Encoded:
        """Arrays of N observations. Slots that an observation lacks are left out, never filled.

        Raises `UserError` INPUT-001 for a view that the policy has no slot for, INPUT-002 for proprio of
        another width or not finite.
        """
        slots = self.policy.inputs.views
        images, image_sample, image_view, texts = [], [], [], []
        for index, seen in enumerate(observations):
            self._check(seen)
            present = [slot for slot in range(len(slots)) if slots[slot] in seen.views]
            images += [prepare_view(seen.views[slots[slot]], self.card["inputs"]) for slot in present]
            image_sample += [index] * len(present)
            image_view += present
            texts.append(_encode_text(self.tokenizer, seen.instruction, seen.proprio, self.card))
        size = self.policy.inputs.image_size
        text_lengths = np.array([len(text) for text in texts], np.int32)
        num_views = np.bincount(image_sample, minlength=len(observations)) if image_sample else 0 * text_lengths
        return Encoded(
            sample_ids=np.arange(len(observations)),
            images=np.stack(images) if images else np.zeros((0, size, size, 3), np.uint8),
            image_sample=np.array(image_sample, np.int32),
            image_view=np.array(image_view, np.int32),
            text_tokens=np.array([token for text in texts for token in text], np.int32),
            text_lengths=text_lengths,
            proprio=np.stack([seen.proprio for seen in observations]).astype(np.float32),
            prefix_lengths=np.array(
                [tokens_of_sample(int(v), int(t), self.policy) for v, t in zip(num_views, text_lengths, strict=True)],
                np.int32,
            ),
        )

    def normalise_proprio(self, proprio_NP: np.ndarray) -> np.ndarray:
        """Raw states (..., P) to float32, limited to ±10."""
        return np.clip(self.proprio_scaling.normalise(proprio_NP), -PROPRIO_LIMIT, PROPRIO_LIMIT)

    def normalise_actions(self, actions_NHA: np.ndarray, proprio_NP: np.ndarray) -> np.ndarray:
        """Raw chunks (..., H, A) that start at raw states (..., P), as the policy learns them."""
        return self.action_scaling.normalise(training_actions(actions_NHA, proprio_NP, self.robot))

    def decode(self, actions_NHA: np.ndarray, proprio_NP: np.ndarray) -> np.ndarray:
        """What the policy gave, (..., H, A), as raw actions for a robot at raw states (..., P)."""
        return untrained_actions(self.action_scaling.denormalise(actions_NHA), proprio_NP, self.robot)

    def _check(self, seen: Observation) -> None:
        unknown = sorted(set(seen.views) - set(self.policy.inputs.views))
        if unknown:
            raise UserError(
                "INPUT-001",
                f"the policy has no slot for view {unknown[0]!r}",
                next_step=f"its slots: {', '.join(self.policy.inputs.views)}",
            )
        if seen.proprio.shape != (self.robot.state_dim,) or not np.isfinite(seen.proprio).all():
            raise UserError(
                "INPUT-002",
                f"proprio must be {self.robot.state_dim} finite numbers "
                f"({', '.join(self.robot.state_names[:4])}, …), not {seen.proprio!r:.60}",
            )
