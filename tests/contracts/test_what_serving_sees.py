"""Training and serving put the same numbers into the policy, though one reads the lake and the other a camera."""

from pathlib import Path

import numpy as np

from model_core.policies.policy import policy_from_json
from model_core.transforms import InputTransform
from model_core.types import Observation
from tests.contracts.built import Built
from tests.contracts.recorded import Recorded

SAME = ("images", "image_sample", "image_view", "text_tokens", "text_lengths", "proprio", "prefix_lengths")


def observations(built: Built, recorded: list[Recorded], sample_ids: np.ndarray) -> list[Observation]:
    """The recorded moments of samples as a robot would send them."""
    table = built.loader().table
    episode, frame = (table.column(name)[sample_ids] for name in ("source_episode", "frame_index"))
    return [
        Observation(
            views={view: frames[at] for view, frames in recorded[number].frames.items()},
            proprio=recorded[number].state[at],
            instruction=recorded[number].instruction,
        )
        for number, at in zip(episode, frame, strict=True)
    ]


def transform_of(built: Built, folder: Path) -> InputTransform:
    policy = built.records["train"]["identity"]["spec"]["policy"]
    return InputTransform(built.loader().table.card, policy_from_json(policy), folder)


def test_an_observation_becomes_what_its_sample_is(built: Built, recorded: list[Recorded]) -> None:
    batch = built.batch()
    seen = observations(built, recorded, batch.sample_ids)
    encoded = transform_of(built, built.folder("preprocess")).encode(seen)
    for name in SAME:
        np.testing.assert_array_equal(getattr(encoded, name), getattr(batch, name), err_msg=name)


def test_decoding_a_training_target_gives_the_recorded_action(built: Built) -> None:
    batch, transform = built.batch(), transform_of(built, built.folder("preprocess"))
    learnt = transform.normalise_actions(batch.actions, batch.proprio)
    np.testing.assert_allclose(transform.decode(learnt, batch.proprio), batch.actions, atol=1e-5)
