"""FlashAttention 2 on packed segments: for CUDA, in 16 bits, with the `flash-attn` extra installed."""

from importlib.util import find_spec

from torch import Tensor

from errors import UserError
from model_core.attention.segments import Segments
from model_core.attention.torch_varlen import check_dtype

MAX_HEAD_DIM = 256


def attend(q_TNK: Tensor, k_TNK: Tensor, v_TNK: Tensor, q_segments: Segments, k_segments: Segments) -> Tensor:
    """See `model_core.attention`. Raises `UserError` ATTN-001 without CUDA, ATTN-002 for 32-bit tensors,
    ATTN-003 when the package is not installed, ATTN-004 for heads wider than it can."""
    if not q_TNK.is_cuda:
        raise UserError("ATTN-001", "flash_attn runs on CUDA only", next_step="set train.attention to sdpa_segments")
    if find_spec("flash_attn") is None:
        raise UserError(
            "ATTN-003",
            "flash-attn is not installed",
            next_step="install the extra `flash-attn`, or set train.attention to torch_varlen",
        )
    if q_TNK.shape[-1] > MAX_HEAD_DIM:
        raise UserError("ATTN-004", f"head_dim {q_TNK.shape[-1]} is above FlashAttention's {MAX_HEAD_DIM}")
    check_dtype(q_TNK, "flash_attn")
    from flash_attn import flash_attn_varlen_func  # type: ignore[import-not-found]

    return flash_attn_varlen_func(
        q_TNK, k_TNK, v_TNK, q_segments.cu, k_segments.cu, q_segments.longest, k_segments.longest, causal=False
    )
