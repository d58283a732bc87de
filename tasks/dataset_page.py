"""Writes the page about a version of a data set: one HTML file with pictures and joint plots, which asks for nothing.

Of a large data set it shows episodes chosen evenly, and says so: the page stays below 20 MB.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from data_lake.one_episode import OneEpisode, describe, numbers_of
from data_lake.overview import Overview, overview
from data_lake.tally import ranges
from data_lake.thumbnails import thumbnails
from data_lake.version import DatasetVersion
from errors import UserError
from tasks import charts
from tasks.report import PAGE, duration, pages

MOST_EPISODES = 48
MOST_PICTURES = 800  # of about 8 kB each
MOST_LINES = 64  # of a plot
PER_STRIP = 3
NUM_BINS = 24
SHOWN_TASKS, SHOWN_VERSIONS = 40, 20
PLOTTED = ("observation.state", "action")


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    path: Path
    num_bytes: int
    num_shown: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Strip:
    """Of one camera: `data:` URIs of its first, middle and last picture, or why there is none."""

    view: str
    pictures: tuple[tuple[str, str], ...]
    absent: str = ""


def write_page(version: DatasetVersion, target: Path) -> Written:
    """Raises UserError LAKE-191 when the file cannot be written."""
    chosen = chosen_places(len(version.episode_rows), len(version.cameras))
    page = build_page(version, chosen)
    try:
        target.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(
            "LAKE-191",
            f"the page cannot be written: {error.strerror}",
            where=str(target),
            next_step="name another file",
        ) from error
    return Written(path=target.resolve(), num_bytes=len(page.encode()), num_shown=len(chosen))


def chosen_places(num_episodes: int, num_cameras: int) -> list[int]:
    """Places in the episodes table, the first and the last among them, evenly in between."""
    most = min(MOST_EPISODES, MOST_PICTURES // (PER_STRIP * max(1, num_cameras)), num_episodes)
    return np.unique(np.linspace(0, num_episodes - 1, max(1, most)).round().astype(int)).tolist()


def build_page(version: DatasetVersion, places: list[int]) -> str:
    """The page that shows the episodes at these places of the episodes table."""
    about = overview(version)
    found = describe(version, places)
    return (
        pages()
        .get_template("dataset.html.j2")
        .render(
            about=about,
            style=Markup((PAGE / "style.css").read_text()),  # noqa: S704  our own file
            duration_s=about.num_frames / about.fps,
            lengths_chart=_lengths(version),
            episodes=[_card(version, about, episode) for episode in found],
            still={column.column: ranges(np.array(column.constant)) for column in about.columns if column.constant},
            when={each.version: _moment(each.created) for each in about.versions},
            shown_tasks=SHOWN_TASKS,
            shown_versions=SHOWN_VERSIONS,
        )
    )


def _card(version: DatasetVersion, about: Overview, episode: OneEpisode) -> dict[str, Any]:
    plots = [
        _plot(version, episode, column.column, column.names)
        for name in PLOTTED
        for column in about.columns
        if column.column == name
    ]
    return {
        "of": episode,
        "duration": duration(episode.seconds),
        "strips": [_strip(version, episode, part.span.view) for part in episode.videos],
        "plots": plots,
    }


def _strip(version: DatasetVersion, episode: OneEpisode, view: str) -> Strip:
    (span,) = (part.span for part in episode.videos if part.span.view == view)
    wanted = sorted({0, episode.length // 2, episode.length - 1})
    videos = (str(version.root / "videos.lance"), version.manifest.vector["videos"])
    where = f"episode {episode.episode_index} · view {view}"
    try:
        found = thumbnails(span, wanted, videos=videos, meaning=episode.meaning, where=where)
    except UserError as error:
        return Strip(view=view, pictures=(), absent=f"{error.code}: {error.message}")
    spoken = [f"{view}, episode {episode.episode_index}, frame {frame}" for frame in wanted]
    return Strip(view=view, pictures=tuple(zip(found, spoken, strict=True)))


def _plot(version: DatasetVersion, episode: OneEpisode, column: str, names: tuple[str, ...]) -> dict[str, Any]:
    rows_TD = numbers_of(version, episode, column)[:, :MOST_LINES]
    called = [name or f"{column}[{number}]" for number, name in enumerate(names[:MOST_LINES])]
    moving = int((rows_TD.max(axis=0) > rows_TD.min(axis=0)).sum())
    alt = (
        f"{column} of episode {episode.episode_index}: {len(called)} lines over {episode.seconds:.1f} s, {moving} move."
    )
    drawn = charts.traces(rows_TD.tolist(), names=called, seconds=episode.seconds, alt=alt)
    left_out = f", the first {MOST_LINES} of them" if len(names) > MOST_LINES else ""
    return {"title": column, "note": f"{len(names)} numbers, {moving} of them move{left_out}", "chart": drawn}


def _lengths(version: DatasetVersion) -> Markup:
    seconds_E = version.episode_rows["length"].to_numpy() / version.info["fps"]
    counts, edges = np.histogram(seconds_E, bins=min(NUM_BINS, max(1, len(np.unique(seconds_E)))))
    first, last = f"{edges[0]:,.1f}", f"{edges[-1]:,.1f} s"
    alt = f"Histogram of {len(seconds_E):,} episodes by length, from {first} to {last}."
    return charts.columns(counts.tolist(), alt=alt, ends=(first, last))


def _moment(created: float) -> str:
    return datetime.fromtimestamp(created, UTC).strftime("%Y-%m-%d %H:%M")
