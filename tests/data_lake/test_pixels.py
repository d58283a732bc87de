"""Memory for pictures: an array like any other, and gone when it is dropped."""

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from data_lake.pixels import copied_pixels, fresh_pixels

MIB = 2**20


def rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("shape", [(3, 4, 5, 3), (0, 4, 5, 3), (7,)])
def test_an_array_that_can_be_written(shape: tuple[int, ...]) -> None:
    pixels = fresh_pixels(*shape)
    assert (pixels.shape, pixels.dtype, pixels.any()) == (shape, np.uint8, False)
    pixels[...] = 7
    assert (pixels == 7).all()


def test_what_threads_drop_goes_back_to_the_system() -> None:
    """Pieces of 20 MiB and scraps beside them, which would hold an arena of malloc in place."""
    scraps = []

    def make(number: int) -> np.ndarray:
        pixels = fresh_pixels(20, MIB)
        pixels[...] = 1
        scraps.append(bytearray(1000 + number))
        return pixels

    before = rss_bytes()
    with ThreadPoolExecutor(4) as pool:
        held = list(pool.map(make, range(6)))
        assert rss_bytes() - before > 100 * MIB
        held.clear()
        gc.collect()
        assert rss_bytes() - before < 20 * MIB


def test_a_copy_shares_nothing() -> None:
    images = fresh_pixels(2, 3, 3, 3)
    images[1] = 7
    copy = copied_pixels(images)
    images[0] = 9
    assert copy[0].max() == 0 and (copy[1] == 7).all()
    assert copied_pixels(images[:0]).shape == (0, 3, 3, 3)
