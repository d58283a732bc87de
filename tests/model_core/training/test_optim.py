"""Clipping, decay and the moving average, by numbers that one can check by head."""

import pytest
import torch
from torch import nn

from model_core.training.optim import average_weights, clip, gradients, make_optimizer, update_average
from tests.model_core.training.fake_policy import SPEC


def test_clip_scales_all_gradients_together_and_returns_the_norm_before() -> None:
    grads = [torch.tensor([3.0]), torch.tensor([[4.0]])]
    assert clip(grads, 1.0) == pytest.approx(5.0)
    assert grads[0].item() == pytest.approx(0.6, rel=1e-5)
    assert grads[1].item() == pytest.approx(0.8, rel=1e-5)
    assert clip(grads, 2.0) == pytest.approx(1.0, rel=1e-5)
    assert grads[0].item() == pytest.approx(0.6, rel=1e-5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_clip_leaves_what_is_not_finite_to_the_caller(bad: float) -> None:
    grads = [torch.tensor([1.0, bad])]
    assert not torch.isfinite(torch.tensor(clip(grads, 0.5)))
    assert grads[0][0].item() == 1.0


def test_a_parameter_that_a_step_did_not_touch_has_a_gradient_of_zeros() -> None:
    model = nn.Linear(2, 1)
    assert [grad.abs().sum().item() for grad in gradients(model)] == [0.0, 0.0]


def test_only_matrices_decay() -> None:
    decayed, kept = make_optimizer(nn.Linear(2, 1), SPEC).param_groups
    assert (decayed["weight_decay"], kept["weight_decay"]) == (SPEC.weight_decay, 0.0)
    assert [p.ndim for p in decayed["params"]] == [2] and [p.ndim for p in kept["params"]] == [1]


def test_the_average_follows_closely_at_first_then_with_the_decay() -> None:
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    average = average_weights(model)
    nn.init.ones_(model.weight)
    update_average(average, model, 0.99, updates=0)  # d = 1/10
    assert average["weight"].item() == pytest.approx(0.9)
    update_average(average, model, 0.99, updates=10**6)
    assert average["weight"].item() == pytest.approx(0.9 + 0.01 * 0.1)


def test_integers_are_copied_into_the_average() -> None:
    model = nn.BatchNorm1d(1)
    average = average_weights(model)
    model.num_batches_tracked += 5
    update_average(average, model, 0.5, updates=0)
    assert average["num_batches_tracked"].item() == 5
