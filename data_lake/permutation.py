"""Keyed permutations of [0, size): who sits where, computed for any index on its own and without a table.

A Feistel network on the next power of four with cycle walking, so a shuffled epoch needs no memory, is the
same for any number of ranks, and resuming needs one integer.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

ROUNDS = 8


def derive_key(*parts: int | str) -> bytes:
    """A 64-byte key from what identifies a permutation: seed, epoch, class, purpose."""
    return hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=8 * ROUNDS).digest()


def _mix(values: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): each input bit moves half of the output bits."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


@dataclass(frozen=True, kw_only=True, slots=True)
class Permutation:
    """A bijection of [0, size) chosen by `key` (see `derive_key`)."""

    size: int
    key: bytes

    @property
    def _half_bits(self) -> int:
        """Bits of one half; the network works on [0, 4 ** half_bits), the smallest such range that holds size."""
        return max(1, ((self.size - 1).bit_length() + 1) // 2)

    def _network(self, values: np.ndarray, *, backwards: bool) -> np.ndarray:
        shift = np.uint64(self._half_bits)
        mask = np.uint64((1 << self._half_bits) - 1)
        left, right = values >> shift, values & mask
        keys = np.frombuffer(self.key, dtype="<u8")
        for key in keys[::-1] if backwards else keys:
            if backwards:
                left, right = right ^ (_mix(left + key) & mask), left
            else:
                left, right = right, left ^ (_mix(right + key) & mask)
        return (left << shift) | right

    def _walk(self, indices: np.ndarray, *, backwards: bool) -> np.ndarray:
        """Apply the network until each value is back inside [0, size): less than four times on average."""
        indices = np.asarray(indices)
        if indices.size and (indices.min() < 0 or indices.max() >= self.size):
            raise IndexError(f"index outside [0, {self.size})")
        values = self._network(indices.astype(np.uint64), backwards=backwards)
        outside = np.flatnonzero(values >= self.size)
        while outside.size:
            values[outside] = self._network(values[outside], backwards=backwards)
            outside = outside[values[outside] >= self.size]
        return values.astype(np.int64)

    def forward(self, indices: np.ndarray) -> np.ndarray:
        """Where each index (N,) goes: (N,) int64. Raises IndexError outside [0, size)."""
        return self._walk(indices, backwards=False)

    def inverse(self, indices: np.ndarray) -> np.ndarray:
        """Which index went to each of these (N,): `inverse(forward(i)) == i`."""
        return self._walk(indices, backwards=True)
