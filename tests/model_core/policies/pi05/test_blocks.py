"""Layers of the policy: norms by hand, rotary positions as Gemma's, gradients as autograd's own."""

import math

import pytest
import torch
from torch.nn import functional as F

from model_core.policies.pi05.blocks import (
    AdaRmsNorm,
    GatedGelu,
    Projections,
    RmsNorm,
    RotatedHeads,
    rotation_table,
    with_pairs_as_neighbours,
)


def rotation(positions: list[int], head_dim: int) -> torch.Tensor:
    return torch.view_as_complex(rotation_table(10, head_dim)[torch.tensor(positions)]).unsqueeze(-2)


def test_rms_norm_by_hand() -> None:
    """rms(3, 4) = sqrt(12.5)."""
    found = RmsNorm(2)(torch.tensor([[3.0, 4.0]]))
    torch.testing.assert_close(found, torch.tensor([[3.0, 4.0]]) / math.sqrt(12.5))


def test_modulation_begins_closed() -> None:
    normed, gate = AdaRmsNorm(2)(torch.tensor([[[3.0, 4.0]]]), torch.ones(1, 2))
    torch.testing.assert_close(normed, torch.tensor([[[3.0, 4.0]]]) / math.sqrt(12.5))
    assert not gate.any()


def test_gated_gelu_is_exact_forward_and_backward() -> None:
    x = torch.randn(3, 8, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(GatedGelu.apply(x), F.gelu(x[:, :4], approximate="tanh") * x[:, 4:])
    assert torch.autograd.gradcheck(GatedGelu.apply, (x,))


def test_rotated_heads_have_exact_gradients() -> None:
    heads = torch.randn(3, 4, 4, dtype=torch.float64, requires_grad=True)
    turns = rotation([0, 1, 5], 4).to(torch.complex128)
    assert torch.autograd.gradcheck(lambda x: RotatedHeads.apply(x, 2, turns), (heads,))


def test_the_first_pair_turns_by_one_radian_a_position() -> None:
    table = rotation_table(3, 4)
    torch.testing.assert_close(table[2, 0], torch.tensor([math.cos(2.0), math.sin(2.0)]))
    torch.testing.assert_close(table[2, 1], torch.tensor([math.cos(0.02), math.sin(0.02)]))


def test_scores_are_those_of_gemma() -> None:
    """Rotary positions over halves, written as in Gemma, give the same products of queries and keys."""
    torch.manual_seed(0)
    layer, x = Projections(6, num_heads=2, num_kv_heads=2, head_dim=4), torch.randn(3, 6)
    q, k, v = layer(x, rotation([0, 3, 7], 4))
    plain_q, plain_k, plain_v = layer.qkv(x).unflatten(-1, (3, 2, 4)).unbind(1)
    cos, sin = (part.repeat(1, 2)[:, None] for part in rotation_table(10, 4)[torch.tensor([0, 3, 7])].unbind(-1))

    def turned(heads: torch.Tensor) -> torch.Tensor:
        left, right = heads.chunk(2, dim=-1)
        return heads * cos + torch.cat([-right, left], dim=-1) * sin

    expected = torch.einsum("qnd,knd->nqk", turned(plain_q), turned(plain_k))
    torch.testing.assert_close(torch.einsum("qnd,knd->nqk", q, k), expected)
    torch.testing.assert_close(v, plain_v)


def test_products_depend_on_distance_alone() -> None:
    torch.manual_seed(0)
    layer, x = Projections(6, num_heads=1, num_kv_heads=1, head_dim=4), torch.randn(2, 6)
    near, far = (layer(x, rotation(places, 4)) for places in ([0, 2], [5, 7]))
    torch.testing.assert_close((near[0][0] * near[1][1]).sum(), (far[0][0] * far[1][1]).sum())


def test_rows_of_turned_heads_are_interleaved_and_others_stay() -> None:
    weight = torch.arange(8.0)[:, None]
    assert with_pairs_as_neighbours(weight, 1, 4)[:, 0].tolist() == [0.0, 2.0, 1.0, 3.0, 4.0, 5.0, 6.0, 7.0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sixteen_bits_stay_sixteen_bits(dtype: torch.dtype) -> None:
    q, k, v = RotatedHeads.apply(torch.randn(2, 3, 4, dtype=dtype), 1, rotation([0, 1], 4))
    assert {q.dtype, k.dtype, v.dtype} == {dtype}
