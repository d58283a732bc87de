"""What a model brings to preprocessing, as small as it can be: no resizing, one token per word."""

from typing import Any

import numpy as np


def prepare_view(image: np.ndarray, inputs: dict[str, Any]) -> np.ndarray:
    """The upper left corner of the image."""
    return image[: inputs["image_size"], : inputs["image_size"]]


def fit_tokenizer(instructions: list[str], inputs: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "words", "words": sorted({word for text in instructions for word in text.split()})}


def text_tokens(instruction: str, proprio_P: np.ndarray | None, card: dict[str, Any], folder: object) -> list[int]:
    """Place of each word in the vocabulary, -1 for an unknown one; then the first proprio, where it is text."""
    words = card["tokenizer"]["words"]
    ids = [words.index(word) if word in words else -1 for word in instruction.split()]
    return ids if proprio_P is None else [*ids, round(float(proprio_P[0]))]


def robot(layout: dict[str, Any]) -> np.ndarray:
    return np.asarray(layout["delta_mask"], bool)


def training_actions(actions_THA: np.ndarray, proprio_TP: np.ndarray, robot: np.ndarray) -> np.ndarray:
    """Action minus proprio of the same number, where the mask says so."""
    return actions_THA - np.where(robot, proprio_TP, 0.0)[:, None]
