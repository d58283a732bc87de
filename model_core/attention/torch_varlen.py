"""Variable-length attention that ships with torch (`torch.nn.attention.varlen`): for CUDA, in 16 bits."""

import torch
from torch import Tensor

from errors import UserError
from model_core.attention.segments import Segments


def attend(q_TNK: Tensor, k_TNK: Tensor, v_TNK: Tensor, q_segments: Segments, k_segments: Segments) -> Tensor:
    """See `model_core.attention`. Raises `UserError` ATTN-001 without CUDA, ATTN-002 for 32-bit tensors."""
    if not q_TNK.is_cuda:
        raise UserError("ATTN-001", "torch_varlen runs on CUDA only", next_step="set train.attention to sdpa_segments")
    check_dtype(q_TNK, "torch_varlen")
    from torch.nn.attention.varlen import varlen_attn  # newer than the oldest torch that the rest runs on

    out = varlen_attn(
        q_TNK,
        k_TNK,
        v_TNK,
        q_segments.cu,
        k_segments.cu,
        q_segments.longest,
        k_segments.longest,
        enable_gqa=q_TNK.shape[1] != k_TNK.shape[1],
    )
    return out if isinstance(out, Tensor) else out[0]  # a pair only where the log-sum-exp is asked for


def check_dtype(q_TNK: Tensor, name: str) -> None:
    """Raises `UserError` ATTN-002 when the kernels have no such precision."""
    if q_TNK.dtype not in (torch.bfloat16, torch.float16):
        raise UserError(
            "ATTN-002",
            f"{name} computes in bfloat16 or float16, not {q_TNK.dtype}",
            next_step="train in bfloat16, or set train.attention to sdpa_segments",
        )
