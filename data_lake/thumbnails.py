"""Small pictures of an episode for a page or a notebook: chosen frames of a camera, upright RGB, as JPEG."""

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

from data_lake.view import Span

WIDTH = 160  # pixels


def thumbnails(
    span: Span, wanted: Sequence[int], *, videos: tuple[str, int], meaning: Mapping[str, Any], where: str = "video"
) -> list[str]:
    """A `data:` URI for each of the frames `wanted`, which ascend. videos: the table of mp4s and its version.
    meaning: what is declared of the pixels and their rate.

    Each frame is sought on its own: three of a long video cost three keyframe intervals, not the video.
    Raises UserError DECODE-001 … -005 for what cannot be decoded, PREP-006 where the lake has no such mp4.
    """
    from data_lake.decode import frames
    from data_lake.images import upright_rgb
    from data_lake.stored_videos import open_video

    found = []
    with open_video(*videos, *span.place) as file:
        for frame in wanted:
            file.seek(0)  # each is opened anew, and FFmpeg begins where the last one stopped
            settings = {"from_s": span.from_s, "to_s": span.to_s, "fps": meaning["fps"], "wanted": [frame]}
            ((_, pixels),) = frames(file, where=where, **settings)
            found.append(_jpeg(upright_rgb(pixels, meaning["colour_order"], meaning["image_orientation"])))
    return found


def _jpeg(pixels: Any) -> str:
    from PIL import Image

    picture = Image.fromarray(pixels)
    if picture.width > WIDTH:
        picture = picture.resize((WIDTH, max(1, round(picture.height * WIDTH / picture.width))))
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=80)
    return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode()}"
