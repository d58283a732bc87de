"""Whether episodes belong where they are to go: the embodiment of the recipe, the kind of frames of a data set."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from data_lake.checks import REQUIRED
from data_lake.examine import Examined
from data_lake.findings import Finding, finding
from data_lake.lake_meta import video_feature
from data_lake.schema import ACTION, PLACE, STATE, dimension_names, dotted_names, features_of
from data_lake.sources.episode import Episode, Source, SourceCard, view_name
from data_lake.specs import IngestSpec
from errors import UserError

RATE_TOLERANCE = 0.01  # 29.97 and 30 Hz are one rate
STRANGERS = 16  # so many before any that fits are enough to know that the source belongs elsewhere


class Stranger(UserError):
    """An episode of another kind than is asked for: it stays out, and where all are such, the source does.

    columns, cameras: by name, in what they differ.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        columns: Mapping[str, str],
        cameras: Mapping[str, str],
        where: str,
        next_step: str,
    ) -> None:
        super().__init__(code, message, where=where, done="nothing was appended", next_step=next_step)
        self.columns, self.cameras = columns, cameras

    def findings(self, episode: Episode) -> list[Finding]:
        """LAKE-019 for its columns, LAKE-233 for each of its cameras."""
        where: dict[str, Any] = {"episode": episode.source_episode, "file": episode.file}
        columns = "; ".join(f"{name} {how}" for name, how in self.columns.items())
        found = [finding("LAKE-019", columns, **where)] if columns else []
        return found + [finding("LAKE-233", how, camera=name, **where) for name, how in self.cameras.items()]


@dataclass(slots=True)
class Kind:
    """What all frames of a data set are like, as the first of them said. features: as in info.json; none at first."""

    source: Source
    dataset: str
    fps: float
    features: dict[str, Any] = field(default_factory=dict)

    def admit(self, examined: Examined) -> None:
        """A sound episode; cameras that were not there before come along. Raises Stranger LAKE-006."""
        features = {**columns_of(examined, self.source), **cameras_of(examined, self.source.card.fps)}
        same_kind(self.source, self.dataset, {"features": self.features, "fps": self.fps}, features)
        self.features = {**features, **self.features}


def columns_of(examined: Examined, source: Source) -> dict[str, Any]:
    """Features of what the rows of a sound episode hold, under their dotted names."""
    assert examined.rows is not None
    return features_of(
        examined.rows.drop_columns(["task"]).schema, dotted_names(examined.episode, source.card.features)
    )


def cameras_of(examined: Examined, fps: float) -> dict[str, Any]:
    """Features of the videos of a sound episode, those that are made of pictures among them."""
    features = {key: video_feature(index, fps, from_pictures=False) for key, (_, index) in examined.videos.items()}
    made = {key: index for key, (_, index) in (*examined.pictures.items(), *examined.made.items())}
    for key, index in made.items():
        features[key] = {"dtype": "video", "shape": [index.height, index.width, 3]}
    return features


def same_kind(source: Source, dataset: str, info: Mapping[str, Any], features: Mapping[str, Any]) -> None:
    """Frames of one data set have the same columns, dimensions and rate, and a camera's pictures one size; names of
    dimensions (but not the place of a name), and which cameras there are, may differ.

    info: of the data set. features: of new frames, without the columns that the lake numbers itself. Raises Stranger
    LAKE-006.
    """
    held = info["features"]
    if not any(_is_column(item) for item in held.values()):
        return
    named = sorted(name for name in {*held, *features} if name not in PLACE)
    columns = {
        name: f"is {_kind(features.get(name))}, {_kind(held.get(name))} before"
        for name in named
        if _is_column(held.get(name) or features[name]) and _kind(held.get(name)) != _kind(features.get(name))
    }
    columns |= {
        name: f"has dimensions {', '.join(there)}, {', '.join(here)} before"
        for name in named
        if name in held and name in features and name not in columns and _is_column(held[name])
        for here, there in [(_names(held[name]), _names(features[name]))]
        if any(each in here and here.index(each) != place for place, each in enumerate(there) if each)
    }
    cameras = {
        name: f"{_size(features[name])}, {_size(held[name])} before"
        for name in named
        if name in held
        and name in features
        and not _is_column(held[name])
        and _size(held[name]) != _size(features[name])
    }
    rate = {} if info["fps"] == source.card.fps else {"fps": f"is {source.card.fps:g}, {info['fps']:g} before"}
    differing = columns | cameras | rate
    if differing:
        told = ", ".join(f"{name} ({how.removeprefix('is ')})" for name, how in differing.items())
        raise Stranger(
            "LAKE-006",
            f"the data set holds another kind of frames: they differ in {told}",
            columns=columns | rate,
            cameras=cameras,
            where=f"data set {dataset} · {source.card.root}",
            next_step="name another data set with ingest.dataset",
        )


def _is_column(feature: Mapping[str, Any]) -> bool:
    return feature["dtype"] != "video"


def _kind(feature: Mapping[str, Any] | None) -> str:
    return "missing" if feature is None else f"{feature['dtype']} {list(feature['shape'])}"


def _names(feature: Mapping[str, Any]) -> tuple[str, ...]:
    """Of the dimensions, "" for those without; of what repeats one, none: it tells nothing."""
    count = math.prod(feature["shape"]) if feature.get("names") else 0
    names = dimension_names(feature.get("names"), count)
    return names if len({*names} - {""}) == sum(map(bool, names)) else ()


def _size(feature: Mapping[str, Any]) -> str:
    height, width = feature["shape"][:2]
    return f"{width} x {height}"


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
    """dims: (state, action) dimensions of the embodiment, None to let pass. Raises Stranger LAKE-005."""
    if dims is None or examined.rows is None:
        return
    found = tuple(examined.rows.schema.field(name).type.list_size for name in (STATE, ACTION))
    if found != dims:
        named = zip(REQUIRED, found, dims, strict=True)
        raise Stranger(
            "LAKE-005",
            f"the data have {found[0]} state and {found[1]} action dimensions, embodiment {spec.embodiment!r} "
            f"has {dims[0]} and {dims[1]}",
            columns={
                name: f"has {mine} dimensions, {wanted} asked for" for name, mine, wanted in named if mine != wanted
            },
            cameras={},
            where=f"episode {examined.episode.source_episode} · {examined.episode.file}",
            next_step="name the embodiment that recorded these episodes with ingest.embodiment",
        )
