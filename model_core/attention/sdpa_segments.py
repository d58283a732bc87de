"""Scaled dot-product attention where neighbouring segments of equal lengths share one batched call.

The way for CPU. Samples sorted by length make few calls; any order gives the same numbers.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from model_core.attention.segments import Segments, runs


def attend(q_TNK: Tensor, k_TNK: Tensor, v_TNK: Tensor, q_segments: Segments, k_segments: Segments) -> Tensor:
    """See `model_core.attention`. Runs of segments are views of the packed tensors: nothing is copied."""
    group = q_TNK.shape[1] // k_TNK.shape[1]
    outputs = []
    q_at = k_at = 0
    for count, q_len, k_len in runs(q_segments, k_segments):
        q_end, k_end = q_at + count * q_len, k_at + count * k_len
        q_RNK, k_RNK, v_RNK = q_TNK[q_at:q_end], k_TNK[k_at:k_end], v_TNK[k_at:k_end]
        q_at, k_at = q_end, k_end
        if q_len == 0 or k_len == 0:
            outputs.append(torch.zeros_like(q_RNK))
            continue
        q, k, v = (x.unflatten(0, (count, length)).transpose(1, 2)
                   for x, length in ((q_RNK, q_len), (k_RNK, k_len), (v_RNK, k_len)))
        out = F.scaled_dot_product_attention(q, k, v, enable_gqa=group > 1)
        outputs.append(out.transpose(1, 2).flatten(0, 1))
    return outputs[0] if len(outputs) == 1 else torch.cat([q_TNK[:0], *outputs])
