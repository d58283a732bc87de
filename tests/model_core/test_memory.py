"""The prediction, against what a real step of the same shape keeps; and at a size that fits nowhere here."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from flows.recipes.tiny import RECIPE as TINY
from model_core.memory import predict, tokens_per_sample
from model_core.policies.pi05.inputs import to_training_inputs
from model_core.policies.policy import build_model
from model_core.specs import PolicySpec
from model_core.training.state import fresh_state
from tests.model_core.samples import card_of, chunks_of, spec_with, transform_of

NUM_SAMPLES = 12


@pytest.mark.parametrize(
    "spec",
    [spec_with(), spec_with(vision="siglip", vision_width=64, vision_depth=2), spec_with(num_kv_heads=2, depth=3)],
    ids=["conv", "siglip", "deeper"],
)
def test_it_is_what_a_real_step_keeps(spec: PolicySpec) -> None:
    torch.manual_seed(0)
    transform = transform_of(spec)
    model = build_model(transform, "sdpa_segments")
    train = replace(TINY.train, num_draws=3)
    longest = ((0, 1), spec.inputs.max_text_tokens)
    batch = to_training_inputs(chunks_of([longest] * NUM_SAMPLES, spec), transform)
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    noise = torch.randn(NUM_SAMPLES, train.num_draws, spec.action_horizon, 4)
    with saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = model.loss(batch, noise, torch.rand(NUM_SAMPLES, train.num_draws))
    loss.sum().backward()
    own = {tensor.untyped_storage().data_ptr() for tensor in model.state_dict(keep_vars=True).values()}
    found = sum(tensor.untyped_storage().nbytes() for pointer, tensor in kept.items() if pointer not in own)

    vocabulary = card_of(spec)["tokenizer"]["size"]
    memory = predict(spec, train, num_samples=NUM_SAMPLES, proprio_dim=4, action_dim=4, vocabulary=vocabulary)
    assert memory.activations == pytest.approx(found, rel=0.1)
    state = fresh_state(model, train)
    state.optimizer.step()
    moments = [value for held in state.optimizer.state.values() for value in held.values() if value.ndim]
    copies = [p.grad for p in model.parameters() if p.grad is not None] + [*moments, *state.ema.values()]
    assert memory.weights == sum(p.nbytes for p in model.parameters())
    assert memory.optimizer == pytest.approx(sum(copy.nbytes for copy in copies), rel=0.01)


def test_a_policy_of_billions_is_planned_without_memory() -> None:
    """The published sizes of π0.5, but for the action expert's MLP, which has the language part's ratio here."""
    spec = replace(
        TINY.policy,
        inputs=replace(TINY.policy.inputs, views=("a", "b", "c"), image_size=224, max_text_tokens=200),
        vision="siglip",
        patch_size=14,
        vision_width=1152,
        vision_depth=27,
        prefix_width=2048,
        suffix_width=1024,
        depth=18,
        num_heads=8,
        num_kv_heads=1,
        head_dim=256,
        mlp_ratio=8,
    )
    memory = predict(spec, TINY.train, num_samples=1, proprio_dim=32, action_dim=32, vocabulary=257_152)
    assert 3.2e9 < memory.weights / 4 < 4.0e9
    assert tokens_per_sample(spec) == 3 * 256 + 200 + 1 + spec.action_horizon
