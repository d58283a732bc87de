"""Layers of the two streams: what the prefix and the action expert are made of."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

EPSILON = 1e-6


class RmsNorm(nn.Module):
    """x / rms(x) * weight over the last dimension. Written out: on CPU it is faster than torch's own."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return scaled_to_unit_rms(x) * self.weight


class AdaRmsNorm(nn.Module):
    """RMS norm whose scale, shift and residual gate come from the flow time; all zero at first (π0.5)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.modulation = nn.Linear(width, 3 * width)
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)

    def forward(self, x_MHD: Tensor, time_MD: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the modulated (M, H, D) and the gate (M, 1, D)."""
        scale, shift, gate = self.modulation(time_MD)[:, None].chunk(3, dim=-1)
        return torch.addcmul(shift, scaled_to_unit_rms(x_MHD), 1 + scale), gate


class GatedMlp(nn.Module):
    """down(gelu(gate(x)) * up(x)), gate and up in one matrix."""

    def __init__(self, width: int, ratio: int) -> None:
        super().__init__()
        self.gate_up = nn.Linear(width, 2 * ratio * width, bias=False)
        self.down = nn.Linear(ratio * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(GatedGelu.apply(self.gate_up(x)))


class Projections(nn.Module):
    """Queries, keys and values of one stream's tokens, rotated by position, and the way back out."""

    def __init__(self, width: int, num_heads: int, num_kv_heads: int, head_dim: int) -> None:
        super().__init__()
        self.num_heads, self.num_kv_heads, self.head_dim = num_heads, num_kv_heads, head_dim
        self.qkv = nn.Linear(width, (num_heads + 2 * num_kv_heads) * head_dim, bias=False)
        self.out = nn.Linear(num_heads * head_dim, width, bias=False)

    def forward(self, x: Tensor, rotation: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(..., D) to q (..., N, K), k and v (..., N_kv, K)."""
        weight = with_pairs_as_neighbours(self.qkv.weight, self.num_heads + self.num_kv_heads, self.head_dim)
        heads = F.linear(x, weight).unflatten(-1, (-1, self.head_dim))
        return rotated_heads(heads, self.num_heads, rotation)


class KeysValues(nn.Module):
    """Keys and values alone: all that the last layer of the prefix is asked for."""

    def __init__(self, width: int, num_kv_heads: int, head_dim: int) -> None:
        super().__init__()
        self.num_kv_heads, self.head_dim = num_kv_heads, head_dim
        self.kv = nn.Linear(width, 2 * num_kv_heads * head_dim, bias=False)

    def forward(self, x: Tensor, rotation: Tensor) -> tuple[Tensor, Tensor]:
        """(..., D) to k and v (..., N_kv, K)."""
        weight = with_pairs_as_neighbours(self.kv.weight, self.num_kv_heads, self.head_dim)
        _, k, v = rotated_heads(F.linear(x, weight).unflatten(-1, (-1, self.head_dim)), 0, rotation)
        return k, v


def with_pairs_as_neighbours(weight: Tensor, num_turned: int, head_dim: int) -> Tensor:
    """The rows of the first `num_turned` heads in the order 0, K/2, 1, K/2 + 1, …

    Weights are kept as Gemma's, where dims i and i + K/2 form a pair that rotary positions turn. Products of q and
    k do not change when both reorder their dims, and neighbours can be turned as one complex number.
    """
    turned, rest = weight.split([num_turned * head_dim, len(weight) - num_turned * head_dim])
    return torch.cat([turned.unflatten(0, (num_turned, 2, -1)).transpose(1, 2).flatten(0, 2), rest])


def rotation_table(num_positions: int, head_dim: int, longest_wave: float = 10_000.0) -> Tensor:
    """Unit complex numbers (num_positions, head_dim / 2) of rotary positions, as (cosine, sine) in a last dimension."""
    waves = longest_wave ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angles = torch.arange(num_positions, dtype=torch.float64)[:, None] * waves
    return torch.stack([angles.cos(), angles.sin()], dim=-1).float()


def rotated_heads(heads: Tensor, num_q: int, rotation: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Heads (..., N, K) of q, k and v in a row to each by itself; q and k are turned by `rotation` (..., 1, K / 2),
    complex, pairs being neighbours."""
    return RotatedHeads.apply(heads, num_q, rotation)


# The two operations below have a backward of their own, since autograd's for splitting a tensor and computing
# with its parts writes and joins several whole copies, which costs more than the arithmetic on CPU.


class RotatedHeads(torch.autograd.Function):
    """The rotation of q and k; its backward is the rotation by the opposite angle."""

    @staticmethod
    def forward(ctx: Any, heads: Tensor, num_q: int, rotation: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        num_kv = (heads.shape[-2] - num_q) // 2
        ctx.save_for_backward(rotation)
        ctx.sizes = [num_q, num_kv, num_kv]
        q, k, v = heads.split(ctx.sizes, dim=-2)
        return _turned(q, rotation), _turned(k, rotation), v.contiguous()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None, None]:
        grad_q, grad_k, grad_v = grads
        back = ctx.saved_tensors[0].conj().resolve_conj()
        return torch.cat([_turned(grad_q, back), _turned(grad_k, back), grad_v], dim=-2), None, None


def _turned(x: Tensor, rotation: Tensor) -> Tensor:
    wide = x if x.dtype in (torch.float32, torch.float64) else x.float()  # there are no complex numbers of 16 bits
    if wide.stride(-1) != 1 or any(step % 2 for step in wide.stride()[:-1]):
        wide = wide.contiguous()
    pairs = torch.view_as_complex(wide.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * rotation).flatten(-2).to(x.dtype)


class GatedGelu(torch.autograd.Function):
    """gelu(gate) * up for gate and up side by side in (..., 2 W); gelu in its tanh form, as Gemma's."""

    @staticmethod
    def forward(ctx: Any, gate_up: Tensor) -> Tensor:
        gate, up = gate_up.chunk(2, dim=-1)
        opened = F.gelu(gate, approximate="tanh")
        ctx.save_for_backward(gate_up, opened)
        return opened * up

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Tensor:
        gate_up, opened = ctx.saved_tensors
        (gate, up), grad_both = gate_up.chunk(2, dim=-1), torch.empty_like(gate_up)
        to_gate, to_up = grad_both.chunk(2, dim=-1)
        torch.mul(grads[0], opened, out=to_up)
        torch.ops.aten.gelu_backward.grad_input(grads[0] * up, gate, approximate="tanh", grad_input=to_gate)
        return grad_both


def scaled_to_unit_rms(x: Tensor) -> Tensor:
    """x / sqrt(mean(x²)) over the last dimension, computed in at least float32."""
    wide = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPSILON)).to(x.dtype)
