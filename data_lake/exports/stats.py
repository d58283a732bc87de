"""Statistics of a version as LeRobot keeps them, per episode and over all, each computed from values.

Quantiles do not average, so those of all episodes come from all rows, and from summed counts of pixel values.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from data_lake.decode import frames as decoded
from data_lake.schema import lake_name, vectors
from data_lake.stored_videos import open_video
from data_lake.version import DatasetVersion

SHARES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
FRAMES_PER_CAMERA = 4096  # decoded for statistics, spread over all episodes
FRAMES_PER_EPISODE = 64

Summary = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionStats:
    """whole, and episodes by their index: key of a column or camera to its summary."""

    whole: Mapping[str, Summary]
    episodes: tuple[dict[str, Summary], ...]


def statistics_of(version: DatasetVersion) -> VersionStats:
    """Exact for columns, one of which is in memory at a time; pixels in [0, 1] of evenly spaced frames."""
    whole: dict[str, Summary] = {}
    episodes: tuple[dict[str, Summary], ...] = tuple({} for _ in version.episodes)
    table = version.table("frames")
    for key in version.columns:
        rows_TD = vectors(table.to_table(columns=[lake_name(key)])[lake_name(key)])
        if rows_TD is None:
            continue
        whole[key] = _of_many_rows(rows_TD)
        for episode, found in zip(version.episodes, episodes, strict=True):
            found[key] = of_rows(rows_TD[episode["dataset_from_index"] : episode["dataset_to_index"]])
    for key in version.cameras:
        total, count = np.zeros((3, 256), np.int64), 0
        for (pixels_3V, num_frames), found in zip(_pixels(version, key), episodes, strict=True):
            found[key] = of_pixels(pixels_3V, num_frames)
            total, count = total + pixels_3V, count + num_frames
        whole[key] = of_pixels(total, count)
    return VersionStats(whole=whole, episodes=episodes)


def of_rows(rows_TD: np.ndarray) -> Summary:
    """Of rows (T, D): lists of D numbers and the count."""
    values_TD = rows_TD.astype(np.float64)
    quantiles_QD = np.quantile(values_TD, list(SHARES.values()), axis=0)
    return {
        "min": values_TD.min(axis=0).tolist(),
        "max": values_TD.max(axis=0).tolist(),
        "mean": values_TD.mean(axis=0).tolist(),
        "std": values_TD.std(axis=0).tolist(),
        "count": [len(rows_TD)],
        **{name: values_D.tolist() for name, values_D in zip(SHARES, quantiles_QD, strict=True)},
    }


def _of_many_rows(rows_TD: np.ndarray) -> Summary:
    """The same, with one dimension at a time as float64."""
    parts = [of_rows(rows_TD[:, [dimension]]) for dimension in range(rows_TD.shape[1])]
    return {name: [part[name][0] for part in parts] for name in parts[0]} | {"count": [len(rows_TD)]}


def of_pixels(pixels_3V: np.ndarray, num_frames: int) -> Summary:
    """Of counts (3, 256) of pixel values per channel, exact: nested as LeRobot has (3, 1, 1), and frames seen."""
    channels = [_of_counts(counts_V) for counts_V in pixels_3V]
    return {name: [[[channel[name]]] for channel in channels] for name in channels[0]} | {"count": [num_frames]}


def _of_counts(counts_V: np.ndarray) -> dict[str, float]:
    values_V, ranks_V = np.arange(256) / 255, np.cumsum(counts_V)
    seen, total = np.flatnonzero(counts_V), int(ranks_V[-1])
    mean = float(values_V @ counts_V) / total

    def quantile(share: float) -> float:
        """Linear between neighbours in rank, as numpy's default."""
        place = (total - 1) * share
        low, high = (values_V[np.searchsorted(ranks_V, rank, "right")] for rank in (np.floor(place), np.ceil(place)))
        return float(low + (high - low) * (place % 1))

    return {
        "min": float(values_V[seen[0]]),
        "max": float(values_V[seen[-1]]),
        "mean": mean,
        "std": float(np.sqrt(((values_V - mean) ** 2) @ counts_V / total)),
        **{name: quantile(share) for name, share in SHARES.items()},
    }


def _pixels(version: DatasetVersion, camera: str) -> Iterator[tuple[np.ndarray, int]]:
    """Per episode, counts (3, 256) of the pixel values of some of its frames, and how many frames."""
    uri, number = str(version.root / "videos.lance"), version.manifest.vector["videos"]
    most = max(1, min(FRAMES_PER_EPISODE, FRAMES_PER_CAMERA // len(version.episodes)))
    for episode in version.episodes:
        place = {name: episode[f"videos/{camera}/{name}"] for name in ("chunk_index", "file_index")}
        begin, end = (episode[f"videos/{camera}/{name}_timestamp"] for name in ("from", "to"))
        wanted = evenly(episode["length"], most)
        counts_3V = np.zeros((3, 256), np.int64)
        where = f"{version.name} · {camera} · episode {episode['episode_index']}"
        with open_video(uri, number, camera, **place, where=where) as file:
            fps = float(version.info["fps"])
            for _, image in decoded(file, from_s=begin, to_s=end, fps=fps, wanted=wanted, where=where):
                counts_3V += [np.bincount(image[..., channel].reshape(-1), minlength=256) for channel in range(3)]
        yield counts_3V, len(wanted)


def evenly(length: int, most: int) -> list[int]:
    """At most `most` of the numbers below `length`, in the middles of equal parts."""
    count = min(length, most)
    return [(2 * place + 1) * length // (2 * count) for place in range(count)]
