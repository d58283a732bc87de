"""Weights as float8 e4m3 in 128x128 blocks, each with one float32 multiplier (`weight_scale_inv`).

The format of DeepSeek-V3 checkpoints, which transformers and vLLM read: w = float8 * scale_inv, where
scale_inv = amax / 448 of the block in spite of its name. Ragged edges keep their own, smaller blocks.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from errors import UserError

BLOCK = 128
LARGEST = 448.0  # of float8 e4m3fn
SMALLEST_SCALE = torch.finfo(torch.float32).tiny  # kernels flush subnormal multipliers to zero


def quantise(weight: Tensor, name: str = "weight") -> tuple[Tensor, Tensor]:
    """A weight (out, in) as float8 e4m3 (out, in) and multipliers float32 (ceil(out/128), ceil(in/128)).

    A block of zeros has the multiplier 1. Raises `UserError` EXPORT-002, naming the layer, for inf or NaN
    and for a tensor that is not a matrix.
    """
    if weight.ndim != 2:
        raise UserError("EXPORT-002", f"{name} has {weight.ndim} dimensions; only matrices have 128x128 blocks")
    if not torch.isfinite(weight).all():
        bad = int((~torch.isfinite(weight)).sum())
        raise UserError("EXPORT-002", f"{name} has {bad} values that are not finite", next_step="train it again")
    wide = weight.detach().to(torch.float32)
    blocks = _blocks(wide)
    amax = blocks.abs().amax(dim=(1, 3))
    scale = torch.clamp(amax / LARGEST, min=SMALLEST_SCALE)
    scale = torch.where(amax == 0, torch.ones_like(scale), scale)
    scaled = (blocks / scale[:, None, :, None]).clamp(-LARGEST, LARGEST)
    out_dim, in_dim = weight.shape
    rows, cols = scale.shape
    flat = scaled.reshape(rows * BLOCK, cols * BLOCK)[:out_dim, :in_dim]
    return flat.to(torch.float8_e4m3fn).contiguous(), scale


def dequantise(float8: Tensor, scale_inv: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The weight (out, in) that `quantise` stored, rounded to `dtype`.

    Raises `UserError` EXPORT-003 when the multipliers do not fit the weight's blocks.
    """
    out_dim, in_dim = float8.shape
    expected = (-(-out_dim // BLOCK), -(-in_dim // BLOCK))
    if tuple(scale_inv.shape) != expected:
        raise UserError(
            "EXPORT-003",
            f"multipliers {tuple(scale_inv.shape)} for a weight {tuple(float8.shape)}: expected {expected}",
        )
    spread = scale_inv.repeat_interleave(BLOCK, 0)[:out_dim].repeat_interleave(BLOCK, 1)[:, :in_dim]
    return (float8.to(torch.float32) * spread).to(dtype)


def _blocks(wide: Tensor) -> Tensor:
    """(rows, 128, cols, 128), the ragged edge filled with zeros, which change no block's amax."""
    out_dim, in_dim = wide.shape
    padded = F.pad(wide, (0, -in_dim % BLOCK, 0, -out_dim % BLOCK))
    return padded.reshape(padded.shape[0] // BLOCK, BLOCK, padded.shape[1] // BLOCK, BLOCK)
