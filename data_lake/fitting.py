"""Whether episodes belong where they are to go: the embodiment of the recipe, the kind of frames of a data set."""

import math
from collections.abc import Mapping
from typing import Any

from data_lake.examine import Examined
from data_lake.findings import Finding, finding
from data_lake.schema import ACTION, STATE
from data_lake.sources.episode import Source, SourceCard, view_name
from data_lake.specs import IngestSpec
from errors import UserError

RATE_TOLERANCE = 0.01  # 29.97 and 30 Hz are one rate


def same_kind(source: Source, dataset: str, info: Mapping[str, Any], features: Mapping[str, Any]) -> None:
    """Frames of one data set have the same columns, dimensions and rate; names of dimensions may differ.

    info: of the data set. features: of the new frames. Raises UserError LAKE-006.
    """
    held = {name: item for name, item in info["features"].items() if item["dtype"] != "video"}
    if not held:
        return
    differing = [name for name in sorted({*held, *features}) if _kind(held.get(name)) != _kind(features.get(name))]
    if info["fps"] != source.card.fps:
        differing.append(f"fps ({info['fps']:g} and {source.card.fps:g})")
    if differing:
        raise UserError(
            "LAKE-006",
            f"the data set holds another kind of frames: they differ in {', '.join(differing)}",
            where=f"data set {dataset} · {source.card.root}",
            done="nothing was appended",
            next_step="name another data set with ingest.dataset",
        )


def _kind(feature: Mapping[str, Any] | None) -> tuple[str, list[int]] | None:
    return None if feature is None else (feature["dtype"], list(feature["shape"]))


def same_embodiment(source: Source, spec: IngestSpec) -> None:
    """What the recorder wrote down, where it did. Raises UserError LAKE-005."""
    declared = source.card.declared.get("embodiment")
    if declared not in (None, spec.embodiment):
        raise UserError(
            "LAKE-005",
            f"the source was recorded with embodiment {declared!r}, the recipe says {spec.embodiment!r}",
            where=f"{source.card.root}/meta/info.json",
            done="nothing was read",
            next_step=f"set ingest.embodiment={declared}",
        )


def same_robot(info: Mapping[str, Any], dataset: str, spec: IngestSpec) -> None:
    """info: of the data set. Episodes of one data set are of one robot. Raises UserError LAKE-006."""
    held = info["vlaloop"].get("embodiment")
    if held not in (None, spec.embodiment):
        raise UserError(
            "LAKE-006",
            f"the data set holds episodes of embodiment {held!r}, these are said to be of {spec.embodiment!r}",
            where=f"data set {dataset}",
            done="nothing was read",
            next_step=f"name another data set with ingest.dataset, or set ingest.embodiment={held}",
        )


def unusual(card: SourceCard, usual: tuple[float, tuple[str, ...]] | None) -> list[Finding]:
    """LAKE-221 and LAKE-222: how the source differs from how its robot usually records. usual: rate in Hz, cameras."""
    if usual is None:
        return []
    rate_hz, cameras = usual
    found = []
    if not math.isclose(card.fps, rate_hz, rel_tol=RATE_TOLERANCE):
        found.append(finding("LAKE-221", f"{card.fps:g} Hz, not {rate_hz:g} Hz"))
    views = [view_name(key) for key in card.cameras]
    if views and set(views) != set(cameras):
        found.append(finding("LAKE-222", f"{', '.join(sorted(views))}, not {', '.join(sorted(cameras)) or 'none'}"))
    return found


def fits(examined: Examined, dims: tuple[int, int] | None, spec: IngestSpec) -> None:
    """dims: (state, action) dimensions of the embodiment, None to let pass. Raises UserError LAKE-005."""
    if dims is None or examined.rows is None:
        return
    found = tuple(examined.rows.schema.field(name).type.list_size for name in (STATE, ACTION))
    if found != dims:
        raise UserError(
            "LAKE-005",
            f"the data have {found[0]} state and {found[1]} action dimensions, embodiment {spec.embodiment!r} "
            f"has {dims[0]} and {dims[1]}",
            where=f"episode {examined.episode.source_episode} · {examined.episode.file}",
            done="nothing was appended",
            next_step="name the embodiment that recorded these episodes with ingest.embodiment",
        )
