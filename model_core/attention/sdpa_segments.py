"""Scaled dot-product attention where neighbouring segments of equal lengths share one batched call.

The way for CPU. Samples sorted by length make few calls; any order gives the same numbers.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from model_core.attention.segments import Segments, runs


def attend(q_TNK: Tensor, k_TNK: Tensor, v_TNK: Tensor, q_segments: Segments, k_segments: Segments) -> Tensor:
    """See `model_core.attention`. Runs of segments are views of the packed tensors: nothing is copied."""
    is_grouped = q_TNK.shape[1] != k_TNK.shape[1]
    found = runs(q_segments, k_segments)
    # split, not slices: its backward is one concatenation, that of a slice is a whole tensor of zeros
    parts_q = q_TNK.split([count * q_len for count, q_len, _ in found])
    k_sizes = [count * k_len for count, _, k_len in found]
    outputs = []
    for (count, q_len, k_len), q, k, v in zip(found, parts_q, k_TNK.split(k_sizes), v_TNK.split(k_sizes), strict=True):
        if q_len == 0 or k_len == 0:
            outputs.append(torch.zeros_like(q))
            continue
        q_RNLK, k_RNLK, v_RNLK = (
            x.unflatten(0, (count, length)).transpose(1, 2) for x, length in ((q, q_len), (k, k_len), (v, k_len))
        )
        out_RNLK = F.scaled_dot_product_attention(q_RNLK, k_RNLK, v_RNLK, enable_gqa=is_grouped)
        outputs.append(out_RNLK.transpose(1, 2).flatten(0, 1))
    return outputs[0] if len(outputs) == 1 else torch.cat([q_TNK[:0], *outputs])
