"""How prepared images are kept: as pixels, as JPEG with its fidelity told, or not at all (`data_lake/video_tier.py`).

JPEG is full chroma (4:4:4) at one quality; Pillow decodes it to the same RGB every time.
"""

import io
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

DECODED, JPEG, VIDEO = "decoded", "jpeg", "video"
QUALITY = 95
MOST_DB = 100.0  # what an image counts that came through unchanged


@dataclass(frozen=True, kw_only=True, slots=True)
class Fidelity:
    """Peak signal to noise of `num_images`, in dB against the prepared pixels: the sum, and the least."""

    num_images: int = 0
    total_db: float = 0.0
    least_db: float = MOST_DB

    def merged(self, others: Iterable["Fidelity"]) -> "Fidelity":
        """Of all images together."""
        found = [self, *others]
        return Fidelity(
            num_images=sum(each.num_images for each in found),
            total_db=sum(each.total_db for each in found),
            least_db=min(each.least_db for each in found),
        )


def kept(images_NHWC: np.ndarray, tier: str) -> tuple[list[bytes], Fidelity]:
    """What the table holds of prepared images (N, S, S, 3) uint8, and how near it comes to them."""
    if tier == DECODED:
        return [image.tobytes() for image in images_NHWC], Fidelity()
    contents = [_jpeg(image) for image in images_NHWC]
    decibels = [_psnr(image, _rgb(content)) for image, content in zip(images_NHWC, contents, strict=True)]
    least = min(decibels, default=MOST_DB)
    return contents, Fidelity(num_images=len(decibels), total_db=sum(decibels), least_db=least)


def told(tier: str, fidelity: Fidelity) -> dict[str, Any]:
    """The card's entry: the tier and, where images are not kept exactly, how near they are."""
    if tier != JPEG:
        return {"tier": tier}
    mean_db = fidelity.total_db / max(1, fidelity.num_images)
    return {"tier": JPEG, "quality": QUALITY, "psnr_mean_db": mean_db, "psnr_min_db": fidelity.least_db}


def pixels(found: pa.Array, card: dict[str, Any]) -> np.ndarray:
    """All images of a large_binary column without nulls, end to end, as uint8. Decoded ones are not copied."""
    if card.get("images", {"tier": DECODED})["tier"] == JPEG:
        images = [_rgb(content).reshape(-1) for content in found.to_pylist()]
        return np.concatenate([*images, np.empty(0, np.uint8)])
    _, offsets, content = found.buffers()
    start, end = np.frombuffer(offsets, np.int64)[[found.offset, found.offset + len(found)]] if len(found) else (0, 0)
    return np.frombuffer(content, np.uint8)[start:end] if content is not None else np.empty(0, np.uint8)


def as_json(fidelity: Fidelity) -> dict[str, float]:
    return asdict(fidelity)


def _jpeg(image: np.ndarray) -> bytes:
    from PIL import Image

    content = io.BytesIO()
    Image.fromarray(image).save(content, format="JPEG", quality=QUALITY, subsampling=0)
    return content.getvalue()


def _rgb(content: bytes) -> np.ndarray:
    from PIL import Image

    with Image.open(io.BytesIO(content)) as image:
        return np.asarray(image.convert("RGB"))


def _psnr(image: np.ndarray, other: np.ndarray) -> float:
    error = np.mean((image.astype(np.float64) - other) ** 2)
    return min(MOST_DB, float(10 * np.log10(255.0**2 / error))) if error else MOST_DB
