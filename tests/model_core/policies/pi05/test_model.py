"""The small π0.5 policy: a packed batch equals its samples one by one, nothing leaks, what is absent costs nothing."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from errors import UserError
from model_core.policies.pi05.inputs import to_inputs, to_training_inputs
from model_core.policies.pi05.layout import SuffixLayout
from model_core.policies.pi05.model import Pi05, encode_time
from model_core.specs import PolicySpec
from tests.model_core.samples import MIXED, SPEC, Chunks, chunks_of, pick, spec_with, transform_of

VARIANTS: dict[str, PolicySpec] = {
    "conv-token": SPEC,
    "siglip-text": spec_with(inputs={"state": "text", "max_text_tokens": 16}, vision="siglip", vision_depth=2),
    "none-mha": spec_with(inputs={"state": "none"}, num_kv_heads=2, depth=1, normalisation="mean_std"),
}


def model_of(spec: PolicySpec = SPEC, attention: str = "sdpa_segments") -> Pi05:
    """With gates that are open: at first they are zero, and a closed gate would hide what is wrong behind it."""
    torch.manual_seed(0)
    model = Pi05(spec, proprio_dim=4, action_dim=4, vocabulary=300, attention=attention)
    for name, parameter in model.named_parameters():
        if "modulation" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def draws(chunks: Chunks, num_draws: int = 2) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(1)
    num, horizon, dims = chunks.actions.shape
    return torch.randn(num, num_draws, horizon, dims, generator=source), torch.rand(num, num_draws, generator=source)


def loss_of(model: Pi05, chunks: Chunks, noise: Tensor, time: Tensor) -> Tensor:
    return model.loss(to_training_inputs(chunks, transform_of(model.spec)), noise, time)


def gradients_of(model: Pi05, losses: list[Tensor]) -> dict[str, Tensor]:
    model.zero_grad()
    torch.cat(losses).sum().backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("attention", ["sdpa_segments", "reference"])
def test_packed_equals_one_by_one(name: str, attention: str) -> None:
    spec = VARIANTS[name]
    model, chunks = model_of(spec, attention), chunks_of(MIXED, spec)
    noise, time = draws(chunks)
    packed = loss_of(model, chunks, noise, time)
    alone = [loss_of(model, pick(chunks, i), noise[i : i + 1], time[i : i + 1]) for i in range(len(MIXED))]
    torch.testing.assert_close(packed, torch.cat(alone), rtol=1e-5, atol=1e-6)
    left, right = gradients_of(model, [packed]), gradients_of(model, alone)
    assert left.keys() == right.keys() == dict(model.named_parameters()).keys()
    for parameter, gradient in left.items():
        assert (gradient - right[parameter]).norm() <= 1e-5 * right[parameter].norm() + 1e-7, parameter


def test_all_attentions_agree() -> None:
    chunks = chunks_of(MIXED)
    noise, time = draws(chunks)
    found, exact = (loss_of(model_of(attention=name), chunks, noise, time) for name in ("sdpa_segments", "reference"))
    torch.testing.assert_close(found, exact, rtol=1e-5, atol=1e-6)


def changed(chunks: Chunks, field: str, sample: int) -> Chunks:
    """The same batch with another image, text, proprio or action of one sample."""
    values = getattr(chunks, field).copy()
    if field == "images":
        values[chunks.image_sample == sample] ^= 255
    elif field == "text_tokens":
        start = int(chunks.text_lengths[:sample].sum())
        values[start : start + int(chunks.text_lengths[sample])] += 9
    else:
        values[sample] += 3.0
    return replace(chunks, **{field: values})


@pytest.mark.parametrize("field", ["images", "text_tokens", "proprio", "actions"])
def test_no_sample_sees_another(field: str) -> None:
    model, chunks = model_of(), chunks_of(MIXED)
    noise, time = draws(chunks)
    before, after = (loss_of(model, c, noise, time) for c in (chunks, changed(chunks, field, 0)))
    assert before[0] != after[0]
    assert torch.equal(before[1:], after[1:])


def test_gradients_of_a_sample_do_not_depend_on_its_neighbours() -> None:
    model, chunks = model_of(), chunks_of(MIXED)
    noise, time = draws(chunks)
    found = [gradients_of(model, [loss_of(model, c, noise, time)[1:]]) for c in (chunks, changed(chunks, "images", 0))]
    for name in found[0]:
        assert torch.equal(found[0][name], found[1][name]), name


def test_the_prefix_does_not_see_the_actions() -> None:
    model, chunks = model_of(), chunks_of(MIXED)
    caches = [model.read_prefix(to_training_inputs(c, transform_of())) for c in (chunks, changed(chunks, "actions", 0))]
    for left, right in zip(*caches, strict=True):
        assert torch.equal(left[0], right[0])
        assert torch.equal(left[1], right[1])


def test_absent_views_never_enter_the_tower() -> None:
    model, chunks, seen = model_of(), chunks_of(MIXED), []
    model.vision.tower.register_forward_hook(lambda _tower, inputs, _out: seen.append(len(inputs[0])))
    noise, time = draws(chunks)
    loss_of(model, chunks, noise, time)
    blind = pick(chunks, 2)
    loss_of(model, blind, noise[2:3], time[2:3])
    assert seen == [sum(len(slots) for slots, _ in MIXED)]


def test_draws_on_one_prefix_equal_separate_draws() -> None:
    model, chunks = model_of(), chunks_of(MIXED)
    noise, time = draws(chunks, num_draws=3)
    together = loss_of(model, chunks, noise, time)
    apart = [loss_of(model, chunks, noise[:, k : k + 1], time[:, k : k + 1]) for k in range(3)]
    torch.testing.assert_close(together, torch.stack(apart).mean(0), rtol=1e-5, atol=1e-6)


def test_steps_past_the_end_are_not_trained_on() -> None:
    model, chunks = model_of(), replace(chunks_of([((0,), 3)]), action_mask=np.array([[True, True, False, False]]))
    noise, time = draws(chunks)
    other = replace(chunks, action_mask=np.array([[True, True, True, True]]))
    assert loss_of(model, chunks, noise, time) != loss_of(model, other, noise, time)
    batch = to_training_inputs(chunks, transform_of())
    noisy = noise.clone().requires_grad_()
    x_MHA = torch.zeros(2, 4, 4)
    assert batch.action_mask_NH is not None
    suffix = SuffixLayout.of(batch.layout, 2, 4)
    found = model.velocity(x_MHA, torch.ones(2), model.read_prefix(batch), batch.layout, suffix)
    # At t = 1 with zero noise the loss is known by hand: the mean of (v + a)² over the two steps that count.
    assert batch.actions_NHA is not None
    by_hand = (found + batch.actions_NHA).square()[:, :2].mean()
    zero = model.loss(batch, torch.zeros_like(noisy), torch.ones(1, 2))
    torch.testing.assert_close(zero, by_hand[None], rtol=1e-5, atol=1e-6)


def test_acting_keeps_the_order_and_is_repeatable() -> None:
    model, chunks = model_of(), chunks_of(MIXED)
    noise = draws(chunks)[0][:, 0]
    together = model.act(to_inputs(chunks, transform_of()), noise, 3)
    assert together.shape == (len(MIXED), 4, 4)
    assert torch.equal(together, model.act(to_inputs(chunks, transform_of()), noise, 3))
    for i in range(len(MIXED)):
        alone = model.act(to_inputs(pick(chunks, i), transform_of()), noise[i : i + 1], 3)
        torch.testing.assert_close(alone[0], together[i], rtol=1e-4, atol=1e-5)


def test_acting_integrates_the_velocity() -> None:
    """One Euler step from t = 1 by hand."""
    model, chunks = model_of(), chunks_of(MIXED[:1])
    noise, batch = draws(chunks)[0][:, 0], to_inputs(chunks, transform_of())
    suffix = SuffixLayout.of(batch.layout, 1, 4)
    with torch.no_grad():
        velocity = model.velocity(noise, torch.ones(1), model.read_prefix(batch), batch.layout, suffix)
    torch.testing.assert_close(model.act(batch, noise, 1), noise - velocity)


def test_eight_samples_are_learnt_by_heart() -> None:
    torch.manual_seed(0)
    model = Pi05(SPEC, proprio_dim=4, action_dim=4, vocabulary=300)
    chunks = replace(chunks_of([((0, 1), 3)] * 8), action_mask=np.ones((8, 4), bool))
    batch = to_training_inputs(chunks, transform_of())
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for step in range(150):
        source = torch.Generator().manual_seed(step)
        noise = torch.randn(8, 4, 4, 4, generator=source)
        time = torch.rand(8, 4, generator=source) * 0.999 + 0.001
        loss = model.loss(batch, noise, time).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert np.mean(losses[-10:]) < 0.35 * np.mean(losses[:10])


def test_at_first_time_has_no_say() -> None:
    """Modulations begin at zero: every layer of the expert is the identity, so all times give one velocity."""
    torch.manual_seed(0)
    model = Pi05(SPEC, proprio_dim=4, action_dim=4, vocabulary=300)
    batch = to_inputs(chunks_of(MIXED[:1]), transform_of())
    suffix, x = SuffixLayout.of(batch.layout, 1, 4), torch.randn(1, 4, 4)
    cache = model.read_prefix(batch)
    early, late = (model.velocity(x, torch.tensor([t]), cache, batch.layout, suffix) for t in (0.1, 0.9))
    assert torch.equal(early, late)


def test_times_are_encoded_by_periods_from_4_ms_to_4_s() -> None:
    code = encode_time(torch.tensor([0.004, 1.0]), 4)
    torch.testing.assert_close(code[0, [0, 2]], torch.tensor([0.0, 1.0]), atol=1e-5, rtol=0)
    torch.testing.assert_close(code[1, [1, 3]], torch.tensor([1.0, 0.0]), atol=1e-5, rtol=0)


def test_language_matrices_are_told_apart() -> None:
    names = {name for name, _ in model_of().named_parameters() if Pi05.is_language(name)}
    assert names == {
        "language.layers.0.attention.qkv.weight",
        "language.layers.0.attention.out.weight",
        "language.layers.0.mlp.gate_up.weight",
        "language.layers.0.mlp.down.weight",
        "language.tail.attention.kv.weight",
    }


def test_a_batch_whose_lengths_disagree_with_the_packer_is_refused() -> None:
    chunks = chunks_of(MIXED)
    with pytest.raises(ValueError, match="do not add up"):
        to_training_inputs(replace(chunks, prefix_lengths=chunks.prefix_lengths[::-1].copy()), transform_of())


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        (replace(SPEC, patch_size=12, inputs=replace(SPEC.inputs, image_size=24)), "POLICY-001"),
        (replace(SPEC, vision="siglip"), "POLICY-002"),
        (replace(SPEC, patch_size=32), "POLICY-003"),
    ],
)
def test_impossible_policies_are_refused(spec: PolicySpec, code: str) -> None:
    with pytest.raises(UserError, match=code):
        model_of(spec)
