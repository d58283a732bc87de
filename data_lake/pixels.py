"""Memory for the pictures of a batch, taken from the system and given back to it when the batch is dropped."""

import contextlib
import math
import mmap
import sys

import numpy as np


def fresh_pixels(*shape: int) -> np.ndarray:
    """(…) uint8, zero. Not from malloc: it would keep what threads freed in an arena of each, and memory would grow
    for hundreds of batches. In huge pages where the system has them to give, since touching small ones costs more
    than filling them."""
    size = math.prod(shape)
    if not size:
        return np.zeros(shape, np.uint8)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # a kernel built without huge pages refuses
            memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8).reshape(shape)


def copied_pixels(images: np.ndarray) -> np.ndarray:
    """The same pictures in memory of their own."""
    found = fresh_pixels(*images.shape)
    found[...] = images
    return found
