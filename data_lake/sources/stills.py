"""Encoded still pictures, JPEG and PNG, decoded with Pillow: libjpeg's own result, to the last bit.

Not with PyAV, as videos are: its colour conversion differs from an image viewer's by up to 60 of 255 on real JPEGs.
"""

import io

import numpy as np
from PIL import Image, UnidentifiedImageError

from data_lake.sources.files import Unreadable, describe


def decoded(content: bytes, name: str, *, modes: tuple[str, ...] = ("RGB",), unknown: str = "LAKE-031") -> np.ndarray:
    """(H, W, 3) uint8 RGB, as encoded: EXIF marks do not turn it, grey is repeated, alpha dropped.

    name: of the picture, for people. Raises Unreadable: `unknown` for what is neither JPEG nor PNG of one of `modes`
    (Pillow's), LAKE-031 for what is broken.
    """
    try:
        with Image.open(io.BytesIO(content), formats=("JPEG", "PNG")) as image:
            if image.mode not in modes:
                raise Unreadable(unknown, f"{name} has the mode {image.mode}")
            return np.ascontiguousarray(np.array(image.convert("RGB") if image.mode == "L" else image)[:, :, :3])
    except UnidentifiedImageError as error:  # its words hold an address in memory
        raise Unreadable(unknown, f"{name} is neither JPEG nor PNG") from error
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:  # what Pillow raises
        raise Unreadable("LAKE-031", f"{name}: {describe(error)}") from error
