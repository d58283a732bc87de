"""Vision towers: tokens per view, independence of images, slots told apart."""

import pytest
import torch

from model_core.policies.pi05.vision import Vision
from model_core.specs import PolicySpec
from tests.model_core.samples import SPEC, spec_with

TOWERS = {"conv": SPEC, "siglip": spec_with(vision="siglip", vision_depth=1)}


def tower(spec: PolicySpec) -> Vision:
    torch.manual_seed(0)
    return Vision(spec)


@pytest.mark.parametrize("name", TOWERS)
def test_a_view_gives_its_tokens_whatever_else_is_in_the_batch(name: str) -> None:
    vision = tower(TOWERS[name])
    images = torch.randint(0, 256, (3, 16, 16, 3), dtype=torch.uint8)
    tokens = vision(images, torch.tensor([0, 1, 0]))
    assert tokens.shape == (3, SPEC.tokens_per_view, SPEC.prefix_width)
    torch.testing.assert_close(vision(images[1:2], torch.tensor([1]))[0], tokens[1])


@pytest.mark.parametrize("name", TOWERS)
def test_the_same_image_in_another_slot_is_told_apart(name: str) -> None:
    image = torch.zeros(1, 16, 16, 3, dtype=torch.uint8)
    first, second = tower(TOWERS[name])(image.expand(2, -1, -1, -1), torch.tensor([0, 1]))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("name", TOWERS)
def test_a_patch_sees_its_own_pixels(name: str) -> None:
    vision = tower(TOWERS[name])
    dark = torch.zeros(1, 16, 16, 3, dtype=torch.uint8)
    bright = dark.clone()
    bright[:, 10:14, 10:14] = 255  # inside of the last of 2 x 2 patches
    change = (vision(bright, torch.zeros(1, dtype=torch.long)) - vision(dark, torch.zeros(1, dtype=torch.long)))[0]
    assert change.norm(dim=-1).argmax() == 3
