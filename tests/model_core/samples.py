"""Small policies, cards and batches that the tests of model_core share."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from model_core.embodiments import METAWORLD_SAWYER, Embodiment, layout_of
from model_core.specs import InputSpec, PolicySpec
from model_core.tokenizers import fit_tokenizer
from model_core.transforms import InputTransform

INSTRUCTIONS = ("open the drawer", "press the button from the top")
INPUTS = InputSpec(views=("top", "corner"), image_size=16, state="token", tokenizer="words", max_text_tokens=8)
SPEC = PolicySpec(
    inputs=INPUTS,
    vision="conv",
    patch_size=8,
    vision_width=16,
    prefix_width=32,
    suffix_width=16,
    depth=2,
    num_heads=2,
    num_kv_heads=1,
    head_dim=8,
    mlp_ratio=2,
    action_horizon=4,
    normalisation="quantile",
)


def spec_with(*, inputs: dict[str, Any] | None = None, **fields: Any) -> PolicySpec:
    return replace(SPEC, inputs=replace(INPUTS, **(inputs or {})), **fields)


def stats_of(dims: int) -> dict[str, Any]:
    return {
        "mean": [0.0] * dims,
        "std": [1.0] * dims,
        "q01": [-2.0] * dims,
        "q99": [2.0] * dims,
        "min": [-3.0] * dims,
        "max": [3.0] * dims,
        "count": 100,
    }


def card_of(spec: PolicySpec = SPEC, robot: Embodiment = METAWORLD_SAWYER) -> dict[str, Any]:
    inputs = asdict(spec.inputs) | {"views": list(spec.inputs.views)}
    return {
        "inputs": inputs,
        "embodiment": robot.name,
        "embodiment_layout": layout_of(robot),
        "stats": {"proprio": stats_of(robot.state_dim), "action": stats_of(robot.action_dim)},
        "tokenizer": fit_tokenizer(INSTRUCTIONS, inputs),
        "instructions": list(INSTRUCTIONS),
        "proprio_dim": robot.state_dim,
        "action_dim": robot.action_dim,
        "control_hz": robot.control_hz,
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunks:
    """What a loader yields, as far as a policy reads it."""

    sample_ids: np.ndarray
    images: np.ndarray
    image_sample: np.ndarray
    image_view: np.ndarray
    text_tokens: np.ndarray
    text_lengths: np.ndarray
    proprio: np.ndarray
    prefix_lengths: np.ndarray
    actions: np.ndarray
    action_mask: np.ndarray


def chunks_of(shapes: list[tuple[tuple[int, ...], int]], spec: PolicySpec = SPEC, seed: int = 0) -> Chunks:
    """Random samples; a shape is (slots that exist, number of text tokens)."""
    rng = np.random.default_rng(seed)
    num, horizon, size = len(shapes), spec.action_horizon, spec.inputs.image_size
    owner = np.array([i for i, (slots, _) in enumerate(shapes) for _ in slots], np.int32)
    views = np.array([slot for slots, _ in shapes for slot in slots], np.int32)
    texts = np.array([text for _, text in shapes], np.int32)
    num_views = np.array([len(slots) for slots, _ in shapes])
    mask = np.arange(horizon) < rng.integers(1, horizon + 1, (num, 1))
    return Chunks(
        sample_ids=np.arange(num),
        images=rng.integers(0, 256, (len(owner), size, size, 3), dtype=np.uint8),
        image_sample=owner,
        image_view=views,
        text_tokens=rng.integers(2, 9, texts.sum()).astype(np.int32),
        text_lengths=texts,
        proprio=rng.normal(size=(num, 4)).astype(np.float32),
        prefix_lengths=(num_views * spec.tokens_per_view + texts + (spec.inputs.state == "token")).astype(np.int32),
        actions=rng.normal(size=(num, horizon, 4)).astype(np.float32),
        action_mask=mask,
    )


def pick(chunks: Chunks, index: int) -> Chunks:
    """Sample `index` alone."""
    start = int(chunks.text_lengths[:index].sum())
    images = chunks.image_sample == index
    one = slice(index, index + 1)
    return Chunks(
        sample_ids=chunks.sample_ids[one],
        images=chunks.images[images],
        image_sample=np.zeros(int(images.sum()), np.int32),
        image_view=chunks.image_view[images],
        text_tokens=chunks.text_tokens[start : start + int(chunks.text_lengths[index])],
        text_lengths=chunks.text_lengths[one],
        proprio=chunks.proprio[one],
        prefix_lengths=chunks.prefix_lengths[one],
        actions=chunks.actions[one],
        action_mask=chunks.action_mask[one],
    )


MIXED = [((0, 1), 3), ((1,), 6), ((), 3), ((0, 1), 0), ((0,), 6), ((0, 1), 3)]


def transform_of(spec: PolicySpec = SPEC) -> InputTransform:
    return InputTransform(card_of(spec), spec)
