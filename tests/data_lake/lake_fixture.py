"""Fabricates a small lake data set whose pixels say which episode, frame and view they are."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import lance
import numpy as np
import pyarrow as pa
from blake3 import blake3

from data_lake.request import ModelFunctions, Request

VIEWS = ("top", "corner")


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """An episode to fabricate. views: those that it has."""

    length: int
    instruction: str = "open the drawer"
    views: tuple[str, ...] = VIEWS


RECORDED = [
    Recorded(length=9),
    Recorded(length=6, views=("corner",), instruction="turn the faucet"),
    Recorded(length=4, instruction="press the button from the top"),
    Recorded(length=12),
    Recorded(length=1),
    Recorded(length=7, views=("top",)),
    Recorded(length=8, instruction="close the drawer"),
]


def request_for(**changes: Any) -> Request:
    """A request that fits the fabricated data, but for `changes`; those of `inputs` and `layout` by key."""
    inputs = {"views": list(VIEWS), "image_size": 16, "sight": "full", "state": "token", "max_text_tokens": 8}
    layout = {"delta_mask": [False] * 4}
    functions = ModelFunctions(
        **{
            name: f"tests.data_lake.model_functions:{name}"
            for name in ("prepare_view", "fit_tokenizer", "text_tokens", "robot", "training_actions")
        }
    )
    wanted = {"sample_stride": 2, "heldout_episodes": (), "functions": functions} | changes
    wanted["inputs"] = inputs | changes.get("inputs", {})
    wanted["layout"] = layout | changes.get("layout", {})
    return Request(**wanted)


def coded_image(episode: int, frame: int, view: str, size: int = 16) -> np.ndarray:
    """(size, size, 3): red is the episode + 1, green the frame, blue 100 + the place of the view."""
    pixel = np.array([episode + 1, frame, 100 + VIEWS.index(view)], np.uint8)
    return np.broadcast_to(pixel, (size, size, 3)).copy()


def mp4(images: list[np.ndarray], fps: float, codec: str = "libx264rgb") -> bytes:
    """Images as a video; losslessly unless another codec is named."""
    content = io.BytesIO()
    with av.open(content, "w", format="mp4") as container:
        stream = container.add_stream(codec, rate=Fraction(fps).limit_denominator(1001))
        stream.height, stream.width = images[0].shape[:2]
        stream.pix_fmt = "rgb24" if codec == "libx264rgb" else "yuv420p"
        stream.options = {"qp": "0", "g": "5"} if codec == "libx264rgb" else {"g": "5", "crf": "10"}
        for number, image in enumerate(images):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return content.getvalue()


def rows_of(episode: int, length: int, dim: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """proprio (T, dim) = episode * 1000 + frame + dim / 10, and actions the same times -1."""
    proprio_TP = episode * 1000 + np.arange(length)[:, None] + np.arange(dim)[None, :] / 10
    return proprio_TP.astype(np.float32), -proprio_TP.astype(np.float32)


def write_dataset(
    folder: Path, recorded: list[Recorded], *, fps: float = 80.0, dim: int = 4, size: int = 16
) -> dict[str, int]:
    """frames.lance and videos.lance at `folder`: per view, one mp4 for all episodes. Returns the version vector."""
    vectors = [rows_of(number, episode.length, dim) for number, episode in enumerate(recorded)]
    lengths = [episode.length for episode in recorded]
    columns = {
        "observation_state": _lists(np.concatenate([proprio for proprio, _ in vectors])),
        "action": _lists(np.concatenate([actions for _, actions in vectors])),
        "frame_index": np.concatenate([np.arange(length) for length in lengths]),
        "episode_index": np.repeat(np.arange(len(lengths)), lengths),
    }
    frames = lance.write_dataset(pa.table(columns), str(folder / "frames.lance"))
    contents = [mp4(_joined(recorded, view, size), fps) for view in VIEWS]
    keys = [f"observation.images.{view}" for view in VIEWS]
    videos = write_videos(folder / "videos.lance", keys, [3, 3], contents)
    return {"frames": frames.version, "videos": videos.version, "meta": 1}


def write_videos(
    path: Path, keys: Sequence[str], numbers: Sequence[int], contents: Sequence[bytes]
) -> lance.LanceDataset:
    """A table of mp4s, `contents`, each the file of that number of a camera in chunk 0."""
    schema = pa.schema(
        [
            pa.field("video_key", pa.string()),
            pa.field("chunk_index", pa.int64()),
            pa.field("file_index", pa.int64()),
            pa.field("file_size", pa.int64()),
            pa.field("blake3", pa.string()),
            lance.blob_field("video_bytes"),
        ]
    )
    digests = [blake3(content).hexdigest() for content in contents]
    told = (keys, [0] * len(keys), numbers, list(map(len, contents)), digests)
    table = pa.table([*map(pa.array, told), lance.blob_array(list(contents))], schema=schema)
    return lance.write_dataset(table, str(path))


def _joined(recorded: list[Recorded], view: str, size: int) -> list[np.ndarray]:
    return [
        coded_image(number, frame, view, size)
        for number, episode in enumerate(recorded)
        if view in episode.views
        for frame in range(episode.length)
    ]


def _lists(rows_TD: np.ndarray) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(rows_TD.reshape(-1)), rows_TD.shape[1])


def write_view(
    folder: Path, recorded: list[Recorded], vector: dict[str, int], *, fps: float = 80.0, **meaning: object
) -> None:
    """episodes.json as ingest writes it; source episodes are numbered from 10."""
    start, seconds, entries = 0, dict.fromkeys(VIEWS, 0.0), []
    for number, episode in enumerate(recorded):
        views = {}
        for view in episode.views:
            end = seconds[view] + episode.length / fps
            place = {"video_key": f"observation.images.{view}", "chunk_index": 0, "file_index": 3}
            views[view] = {**place, "from_s": seconds[view], "to_s": end}
            seconds[view] = end
        entries.append(
            {
                "episode_index": number,
                "source_episode": 10 + number,
                "length": episode.length,
                "from_index": start,
                "to_index": start + episode.length,
                "instruction": episode.instruction,
                "views": views,
                "content_hash": f"{number:064x}",
                "recording": f"{number:064x}",
            }
        )
        start += episode.length
    declared = {
        "colour_order": "rgb",
        "image_orientation": "upright",
        "action_mode": "absolute",
        "fps": fps,
        "render_every": 1,
        "instruction_source": "tasks",
    }
    view = {
        "dataset": "coded",
        "version": 1,
        "vector": vector,
        "embodiment": "metaworld_sawyer",
        "meaning": declared | meaning,
        "episodes": entries,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "episodes.json").write_text(json.dumps(view))
