"""`show` of a data set: what it holds, one of its episodes, or a page about it; other names are refs of the loop."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from data_lake.names import NAME
from data_lake.one_episode import OneEpisode, find_episodes
from data_lake.overview import ColumnLine, Overview, overview
from data_lake.tables import dataset_root, versions
from data_lake.tally import ranges
from data_lake.version import open_version
from data_lake.words import counted
from flows.commands import lake
from flows.commands.quarantine import ingests_of
from flows.places import Places
from flows.screen import DONE, Screen, seconds, size

SHOWN = 12  # lines of a table
FEW = 4  # dimensions told by name
FOLDER = "datasets/"
WORDS = {
    "colour_order": "colours {}",
    "image_orientation": "pictures {}",
    "action_mode": "actions {}",
    "render_every": "a picture every {} rows",
    "grippers": "grippers: {}",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What of a data set: one episode by the lake's number or the source's, or the page at `html`; else all."""

    episode: int | None = None
    source_episode: str | None = None
    html: Path | None = None

    @property
    def is_of_dataset(self) -> bool:
        return (self.episode, self.source_episode, self.html) != (None, None, None)


def show(where: Places, name: str, asked: Asked, screen: Screen) -> int:
    """A data set (`NAME`, `NAME@3`, `datasets/NAME` where a ref has that name too), or a ref of the loop.

    A data set's whole name comes before the beginning of a fingerprint; a registered `NAME@2` before a data set's.
    """
    bare = name.removeprefix(FOLDER)
    plain, at, _ = bare.partition("@")
    known = NAME.fullmatch(plain) is not None and bool(versions(dataset_root(where.lake, plain)))
    refs = [] if bare != name else lake.find_refs(where.lake, name)
    if bare != name or asked.is_of_dataset or (known and not (at and refs)):
        if refs and not asked.is_of_dataset:
            screen.aside(f"{name} also begins the name of a ref: ./vlaloop show {lake.short(refs[0])}")
        return _dataset(where, bare, asked, screen)
    if known:
        screen.aside(f"{name} is a registered model; the data set of that name: ./vlaloop show {FOLDER}{name}")
    return lake.show(where, name, screen)


def _dataset(where: Places, named: str, asked: Asked, screen: Screen) -> int:
    version = open_version(where.lake, named)
    if asked.html is not None:
        from tasks.dataset_page import write_page

        written = write_page(version, asked.html)
        shown = f"{written.num_shown:,} of {counted(version.manifest.num_episodes, 'episode')}"
        screen.line(f"{written.path} · {shown} · {written.num_bytes / 1e6:.1f} MB")
        result = asdict(written) | {"path": str(written.path)}
    elif asked.is_of_dataset:
        found = find_episodes(version, episode=asked.episode, source_episode=asked.source_episode)
        for each in found:
            _tell_episode(each, version.name, screen)
        result = {
            "dataset": version.root.name,
            "version": version.manifest.version,
            "episodes": [asdict(each) for each in found],
        }
    else:
        about = overview(version)
        ingests = ingests_of(where.lake, version.root.name, version.manifest.version)
        _tell(about, ingests, screen)
        result = asdict(about) | {"ingests": ingests}
    screen.answer({"command": "show", "ok": True, "result": result})
    return DONE


def _tell(about: Overview, ingests: Sequence[dict[str, Any]], screen: Screen) -> None:
    duration = seconds(about.num_frames / about.fps)
    screen.line(
        f"{about.dataset}@{about.version} · {counted(about.num_episodes, 'episode')}"
        f" · {counted(about.num_frames, 'frame')} · {duration} at {about.fps:g} Hz"
    )
    _pair(screen, "robot", f"{about.robot or 'not said'} · embodiment {about.embodiment or 'not said'}")
    for meaning in about.meanings:
        whose = "" if len(about.meanings) == 1 else f"{counted(meaning['num_episodes'], 'episode')}: "
        _pair(screen, "meaning", whose + meant(meaning))
    shortest, median, longest = about.lengths
    _pair(screen, "lengths", f"{shortest:,} rows the shortest · {median:,} the median · {longest:,} the longest")
    sources = [f"{source} ({count:,})" for source, count in about.sources.items()]
    more = f" and {len(sources) - SHOWN:,} more" if len(sources) > SHOWN else ""
    _pair(screen, "sources", ", ".join(sources[:SHOWN]) + more)
    _came(ingests, screen)
    _pair(screen, "stored at", about.path)
    _pair(screen, "pictures", f"./vlaloop show {about.dataset}@{about.version} --html {about.dataset}.html")
    for mark in about.marks:
        first = ", ".join(str(number) for number in mark.episodes)
        more = ", …" if mark.num_episodes > len(mark.episodes) else ""
        _pair(screen, "look at", f"{mark.what}: {mark.num_episodes:,} (episode {first}{more})")
    _tasks(about, screen)
    _versions(about, screen)
    cameras = [
        (each.view, f"{each.width}×{each.height}", each.codec, f"{each.num_episodes:,}") for each in about.cameras
    ]
    _table(screen, ("camera", "pixels", "codec", "episodes"), cameras)
    columns = [(each.column, each.dtype, str(len(each.names)), still(each)) for each in about.columns]
    _table(screen, ("column", "type", "dims", "never changes"), columns)
    tables = [(each.table, f"{each.num_rows:,}", size(each.num_bytes)) for each in about.tables]
    _table(screen, ("table", "rows", "size"), tables)


def _came(ingests: Sequence[dict[str, Any]], screen: Screen) -> None:
    """The newest ingests: from where, when, and what was kept out."""
    for each in ingests[-SHOWN:]:
        out = f"{each['num_quarantined']:,} quarantined: ./vlaloop show {each['slot']}"
        told = (
            ", ".join(each["sources"]),
            each["finished"][:16].replace("T", " "),
            *([out] * (each["num_quarantined"] > 0)),
        )
        _pair(screen, "ingested", " · ".join(told))
    if len(ingests) > SHOWN:
        _pair(screen, "", f"… and {len(ingests) - SHOWN:,} earlier (--json has all)")


def _versions(about: Overview, screen: Screen) -> None:
    lines = [
        (
            str(each.version),
            moment(each.created),
            f"{each.num_episodes:,}",
            f"{each.num_frames:,}",
            ", ".join(each.notes),
        )
        for each in about.versions
    ]
    _table(screen, ("version", "when (UTC)", "episodes", "frames", "what changed"), lines)


def _tasks(about: Overview, screen: Screen) -> None:
    """The commonest, and of those below them what is there under another spelling."""
    lines = []
    for each in about.tasks:
        notes = [f"like {each.same_as!r}"] if each.same_as else []
        lines.append((f"{each.num_episodes:,}", each.task or "(no instruction)", ", ".join(notes)))
    odd = [line for line in lines[SHOWN:] if line[2]]
    if odd:
        _pair(screen, "look at", f"{counted(len(odd), 'rare task')}, the first {odd[0][1]!r}: {odd[0][2]}")
    _table(screen, ("episodes", "task", ""), lines)


def _tell_episode(episode: OneEpisode, dataset: str, screen: Screen) -> None:
    screen.line(f"{dataset} · episode {episode.episode_index} · {episode.instruction or '(no instruction)'}")
    _pair(
        screen,
        "rows",
        f"{episode.from_index:,} … {episode.to_index - 1:,} of frames.lance"
        f" ({episode.length:,}, {episode.seconds:.1f} s)",
    )
    _pair(screen, "source", f"{episode.source} · its episode {episode.source_episode}")
    _pair(screen, "content", episode.content_hash)
    if len(episode.tasks) > 1:
        _pair(screen, "tasks", "; ".join(episode.tasks))
    _pair(screen, "meaning", meant(episode.meaning))
    if episode.extra:
        _pair(screen, "extra", json.dumps(episode.extra))
    for mark in episode.marks:
        _pair(screen, "look at", mark)
    for part in episode.videos:
        where = f"{part.file} · {part.span.from_s:.3f} … {part.span.to_s:.3f} s · {size(part.num_bytes)}"
        _pair(screen, part.span.view, f"{where} · {part.blake3[:16]}")


def meant(meaning: dict[str, Any]) -> str:
    """`colours rgb · pictures upright · actions absolute`; what nobody said is said to be so."""
    unsaid = {"render_every": None, "grippers": "as recorded"}
    told = {name: meaning.get(name) or unsaid.get(name, "not said") for name in WORDS}
    if told["render_every"] == 1:
        told["render_every"] = None
    return " · ".join(WORDS[name].format(value) for name, value in told.items() if value is not None)


def still(column: ColumnLine) -> str:
    """`2 of 7: gripper, 5`, dimensions that never change; of many only their numbers, `25 of 44: 7-21, 34-43`."""
    if not column.constant:
        return ""
    few = ", ".join(column.names[number] or str(number) for number in column.constant)
    told = few if len(column.constant) <= FEW else ranges(np.array(column.constant))
    return f"{len(column.constant)} of {len(column.names)}: {told}"


def moment(created: float) -> str:
    return datetime.fromtimestamp(created, UTC).strftime("%Y-%m-%d %H:%M")


def _pair(screen: Screen, name: str, text: str) -> None:
    screen.line(f"  {name:<12} {text}")


def _table(screen: Screen, titles: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """The first lines, words to the left and numbers to the right; nothing where there are none."""
    if not lines:
        return
    screen.line()
    screen.table(titles, lines[:SHOWN], right=("version", "episodes", "frames", "rows", "size", "dims"))
    if len(lines) > SHOWN:
        screen.line(f"… and {len(lines) - SHOWN:,} more (--json has all)")
