"""Keyed permutations of [0, size): who sits where, computed for any index on its own and without a table.

A generalised Feistel network on two digits whose product hardly exceeds the size, with cycle walking. A shuffled
epoch needs no memory, is the same for any number of ranks, and resuming needs one integer.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

ROUNDS = 8


def derive_key(*parts: int | str) -> np.ndarray:
    """Round keys (ROUNDS,) uint32 from what identifies permutations: seed, epoch, purpose."""
    digest = hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=4 * ROUNDS).digest()
    return np.frombuffer(digest, dtype="<u4")


def _mix(values: np.ndarray) -> np.ndarray:
    """The finaliser of MurmurHash3 (Appleby, public domain) on uint32: each input bit moves half of the output bits."""
    values = (values ^ (values >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    values = (values ^ (values >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return values ^ (values >> np.uint32(16))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Permutations:
    """One bijection of [0, sizes_C[c]) for each c, chosen by `key` (see `derive_key`) and the class's own names_C.

    Sizes below 2**62. Black and Rogaway 2002 describe the network on Z_a x Z_b (a * b >= size).
    """

    sizes_C: np.ndarray
    names_C: np.ndarray
    key: np.ndarray

    def forward(self, classes_N: np.ndarray, indices_N: np.ndarray) -> np.ndarray:
        """Where index indices_N[n] of class classes_N[n] goes: (N,) int64. Raises IndexError outside [0, size)."""
        sizes_N = self.sizes_C[classes_N]
        if np.any((indices_N < 0) | (indices_N >= sizes_N)):
            raise IndexError("index outside of its permutation")
        a_C = np.ceil(np.sqrt(self.sizes_C)).astype(np.int64)
        b_C = -(-self.sizes_C // np.maximum(a_C, 1))
        keys_CR = _mix(self.names_C.astype(np.uint32)[:, None] * np.uint32(0x9E3779B9) ^ self.key)
        places_N = self._network(classes_N, indices_N, a_C, b_C, keys_CR)
        outside = np.flatnonzero(places_N >= sizes_N)
        while outside.size:  # a * b exceeds the size by less than a: rarely, and hardly ever twice
            places_N[outside] = self._network(classes_N[outside], places_N[outside], a_C, b_C, keys_CR)
            outside = outside[places_N[outside] >= sizes_N[outside]]
        return places_N

    def _network(
        self, classes_N: np.ndarray, values_N: np.ndarray, a_C: np.ndarray, b_C: np.ndarray, keys_CR: np.ndarray
    ) -> np.ndarray:
        a_N, b_N = a_C[classes_N], b_C[classes_N]
        left, right = np.divmod(values_N, b_N)
        for turn in range(ROUNDS):
            keys_N = keys_CR[:, turn][classes_N]
            if turn % 2:
                right = _add(right, left, keys_N, b_N)
            else:
                left = _add(left, right, keys_N, a_N)
        return left * b_N + right


def _add(digit_N: np.ndarray, other_N: np.ndarray, keys_N: np.ndarray, modulus_N: np.ndarray) -> np.ndarray:
    """(digit + hash(other)) modulo modulus; the hash is brought below modulus by a product (Lemire 2019)."""
    hashed_N = _mix(other_N.astype(np.uint32) ^ keys_N)
    added_N = digit_N + ((hashed_N.astype(np.uint64) * modulus_N.astype(np.uint64)) >> np.uint64(32)).astype(np.int64)
    return np.where(added_N >= modulus_N, added_N - modulus_N, added_N)
