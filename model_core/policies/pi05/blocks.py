"""Layers of the two streams: what the prefix and the action expert are made of."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

EPSILON = 1e-6

Rotation = tuple[Tensor, Tensor]  # cosines and sines (..., 1, K / 2) of each token's position


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
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self.down(F.gelu(gate, approximate="tanh") * up)


class Projections(nn.Module):
    """Queries, keys and values of one stream's tokens, rotated by position, and the way back out."""

    def __init__(self, width: int, num_heads: int, num_kv_heads: int, head_dim: int) -> None:
        super().__init__()
        self.num_heads, self.num_kv_heads, self.head_dim = num_heads, num_kv_heads, head_dim
        self.qkv = nn.Linear(width, (num_heads + 2 * num_kv_heads) * head_dim, bias=False)
        self.out = nn.Linear(num_heads * head_dim, width, bias=False)

    def forward(self, x: Tensor, rotation: Rotation) -> tuple[Tensor, Tensor, Tensor]:
        """(..., D) to q (..., N, K), k and v (..., N_kv, K)."""
        heads = self.qkv(x).unflatten(-1, (-1, self.head_dim))
        turned, v = heads.split([self.num_heads + self.num_kv_heads, self.num_kv_heads], dim=-2)
        q, k = rotate(turned, rotation).split([self.num_heads, self.num_kv_heads], dim=-2)
        return q, k, v


class KeysValues(nn.Module):
    """Keys and values alone: all that the last layer of the prefix is asked for."""

    def __init__(self, width: int, num_kv_heads: int, head_dim: int) -> None:
        super().__init__()
        self.head_dim = head_dim
        self.kv = nn.Linear(width, 2 * num_kv_heads * head_dim, bias=False)

    def forward(self, x: Tensor, rotation: Rotation) -> tuple[Tensor, Tensor]:
        k, v = self.kv(x).unflatten(-1, (-1, self.head_dim)).chunk(2, dim=-2)
        return rotate(k, rotation), v


def rotation_table(num_positions: int, head_dim: int, longest_wave: float = 10_000.0) -> tuple[Tensor, Tensor]:
    """Cosines and sines (num_positions, head_dim / 2) of rotary positions."""
    waves = longest_wave ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angles = torch.arange(num_positions, dtype=torch.float64)[:, None] * waves
    return angles.cos().float(), angles.sin().float()


class _Rotate(torch.autograd.Function):
    """The rotation in four passes; its backward is the rotation by the opposite angle."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _turn(x, cos, sin, 1.0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        return _turn(grad, *ctx.saved_tensors, -1.0), None, None


def _turn(x: Tensor, cos: Tensor, sin: Tensor, sign: float) -> Tensor:
    left, right = x.chunk(2, dim=-1)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    out_left, out_right = out.chunk(2, dim=-1)
    torch.mul(left, cos, out=out_left).addcmul_(right, sin, value=-sign)
    torch.mul(right, cos, out=out_right).addcmul_(left, sin, value=sign)
    return out


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """Rotary positions on (..., N, K): halves (not neighbours) form the pairs, as in Gemma."""
    cos, sin = rotation
    return _Rotate.apply(x, cos.to(x.dtype), sin.to(x.dtype))


def scaled_to_unit_rms(x: Tensor) -> Tensor:
    """x / sqrt(mean(x²)) over the last dimension, computed in at least float32."""
    wide = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + EPSILON)).to(x.dtype)
