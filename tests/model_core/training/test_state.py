"""The state before the first step."""

import torch

from model_core.training.state import device_of, fresh_state
from tests.model_core.training.fake_policy import SPEC, FakePolicy


def test_a_fresh_state_averages_a_copy_of_the_weights() -> None:
    state = fresh_state(FakePolicy(), SPEC)
    assert (state.step, state.samples_seen, state.updates, state.history) == (0, 0, 0, [])
    before = state.ema["linear.weight"].clone()
    with torch.no_grad():
        state.model.get_parameter("linear.weight").add_(1)
    assert torch.equal(state.ema["linear.weight"], before)


def test_device() -> None:
    assert device_of(FakePolicy()) == torch.device("cpu")
