"""The oracle: plain softmax over all pairs of tokens, masked to equal segments. Slow, obviously right."""

import torch
from torch import Tensor

from model_core.attention.segments import Segments


def attend(q_TNK: Tensor, k_TNK: Tensor, v_TNK: Tensor, q_segments: Segments, k_segments: Segments) -> Tensor:
    """See `model_core.attention`. Memory grows with tokens of q times tokens of k."""
    group = q_TNK.shape[1] // k_TNK.shape[1]
    k_TNK, v_TNK = k_TNK.repeat_interleave(group, dim=1), v_TNK.repeat_interleave(group, dim=1)
    same_QK = _owner(q_segments, q_TNK)[:, None] == _owner(k_segments, k_TNK)[None, :]
    scores_NQK = torch.einsum("qnd,knd->nqk", q_TNK, k_TNK) * q_TNK.shape[-1] ** -0.5
    weights_NQK = torch.softmax(scores_NQK.masked_fill(~same_QK, -1e30), dim=-1)
    weights_NQK = torch.where(same_QK, weights_NQK, 0.0)  # a row without any key of its own
    return torch.einsum("nqk,knd->qnd", weights_NQK, v_TNK)


def _owner(segments: Segments, tokens_TNK: Tensor) -> Tensor:
    """Per token the number of its segment."""
    lengths = torch.tensor(segments.lengths, device=tokens_TNK.device)
    return torch.repeat_interleave(torch.arange(len(segments.lengths), device=tokens_TNK.device), lengths)
