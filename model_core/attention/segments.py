"""Where packed segments begin: the same boundaries on the device (for kernels) and on the host (for shapes)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Self

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Segments:
    """`cu` (S + 1,) int32 on the device, from 0 to T. `lengths` of the S segments on the host, so that asking for
    a length never waits for the device."""

    cu: Tensor
    lengths: tuple[int, ...]

    @classmethod
    def of(cls, lengths: Sequence[int] | np.ndarray, device: torch.device | str = "cpu") -> Self:
        """From lengths (S,), each at least 0."""
        found = np.asarray(lengths, np.int64)
        cu = np.concatenate(([0], np.cumsum(found))).astype(np.int32)
        return cls(cu=torch.from_numpy(cu).to(device), lengths=tuple(found.tolist()))

    @property
    def num_tokens(self) -> int:
        return sum(self.lengths)

    @property
    def longest(self) -> int:
        return max(self.lengths, default=0)


Attend = Callable[[Tensor, Tensor, Tensor, Segments, Segments], Tensor]


def runs(q: Segments, k: Segments) -> list[tuple[int, int, int]]:
    """Neighbouring segments of equal lengths, as (how many, length in q, length in k)."""
    if len(q.lengths) != len(k.lengths):
        raise ValueError(f"{len(q.lengths)} segments of q, {len(k.lengths)} of k")
    pairs = groupby(zip(q.lengths, k.lengths, strict=True))
    return [(sum(1 for _ in group), q_len, k_len) for (q_len, k_len), group in pairs]
