"""What a version says of itself in LeRobot's words: the values of info.json, of the tasks and of each episode."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from data_lake import lake_meta
from data_lake.exports.stats import VersionStats
from data_lake.findings import Finding, finding
from data_lake.meaning import shared_meaning
from data_lake.sources.lerobot_v3 import PARTS
from data_lake.version import DatasetVersion
from errors import UserError

OURS = {
    "instruction",
    "source",
    "source_episode",
    "content_hash",
    lake_meta.AS_IT_CAME,
    lake_meta.RECORDING,
    "extra",
    "meaning",
}  # columns of the lake alone


def ensure_sayable(version: DatasetVersion) -> None:
    """Raises UserError LAKE-130 when an episode lacks a camera: LeRobot's readers expect all of them in each."""
    for episode in version.episodes:
        absent = [key for key in version.cameras if episode.get(f"videos/{key}/chunk_index") is None]
        if absent:
            raise UserError(
                "LAKE-130",
                f"episode {episode['episode_index']} has no camera {absent[0]!r}, which LeRobot cannot say",
                where=f"{version.name} · source episode {episode['source_episode']} of {episode['source']}",
                done="nothing was written",
                next_step="ingest episodes with the same cameras into a data set of their own",
            )


def unlike_lerobot(version: DatasetVersion) -> list[Finding]:
    """LAKE-131 when pictures are not what LeRobot's readers take them for: upright RGB. LAKE-196 for a camera that was
    no video."""
    meaning, usual = (
        shared_meaning(version.name, version.episodes),
        {"colour_order": "rgb", "image_orientation": "upright"},
    )
    odd = [f"{name} is {meaning[name]}" for name, value in usual.items() if meaning[name] not in (None, value)]
    findings = [finding("LAKE-131", ", ".join(odd), file="meta/info.json")] if odd and version.cameras else []
    made = [key for key in version.cameras if lake_meta.FROM_PICTURES in version.info["features"][key].get("info", {})]
    return findings + [finding("LAKE-196", camera=key) for key in made]


def info_of(version: DatasetVersion) -> dict[str, Any]:
    """info.json of v3.0. Under `vlaloop` stands what LeRobot has no word for, as our own reader takes it back."""
    meant = shared_meaning(version.name, version.episodes)
    meaning = {name: value for name, value in meant.items() if value is not None and name != "fps"}
    info = {name: value for name, value in version.info.items() if name != "storage_format"}
    return info | {"vlaloop": dict(version.info["vlaloop"]) | meaning}


def tasks_of(version: DatasetVersion, *, by_position: bool) -> dict[str, int]:
    """Text to index, without texts that no episode has any more. by_position: readers take the index for a place in
    the table, so that only those behind the last can be left out."""
    said = {text for episode in version.episodes for text in episode["tasks"]}
    last = max(version.tasks[text] for text in said)
    return {text: n for text, n in version.tasks.items() if text in said or (by_position and n < last)}


def v3_files(
    version: DatasetVersion, stats: VersionStats, places: Sequence[Mapping[str, int]] | None = None
) -> dict[str, bytes]:
    """The files below meta/ of a v3.0 folder, by their path. places: per episode the columns that say in which data
    file its rows are; without, the meta/ of LeRobot's native Lance layout."""
    tasks = tasks_of(version, by_position=True)
    info = info_of(version) | {"total_tasks": len(tasks)} | ({"storage_format": "lance"} if places is None else {})
    placed = [
        episode | dict(place)
        for episode, place in zip(version.episodes, places or [{}] * len(version.episodes), strict=True)
    ]
    return {
        lake_meta.INFO: json.dumps(info, indent=4).encode(),
        lake_meta.STATS: json.dumps(stats.whole, indent=4).encode(),
        lake_meta.TASKS: lake_meta.parquet_bytes(lake_meta.tasks_table(tasks)),
        lake_meta.EPISODES: lake_meta.parquet_bytes(_table(placed, stats, said_beside(version))),
    }


def said_beside(version: DatasetVersion) -> list[dict[str, Any]]:
    """Per episode what its source said of it beside. LeRobot's columns and ours keep their names to themselves."""
    extras = [json.loads(episode["extra"]) for episode in version.episodes]
    names = [name for extra in extras for name in extra]
    taken = {*version.episode_rows.column_names, *OURS, *(name for name in names if name.startswith(PARTS))}
    titles = lake_meta.kept_apart(names, taken)
    return [{titles[name]: value for name, value in extra.items()} for extra in extras]


def _table(episodes: Sequence[Mapping[str, Any]], stats: VersionStats, beside: Sequence[Mapping[str, Any]]) -> pa.Table:
    """LeRobot's columns, the statistics of each episode, and what the source said of it beside (seed, success)."""
    rows = [
        {name: value for name, value in episode.items() if name not in OURS}
        | {f"stats/{key}/{name}": value for key, summary in found.items() for name, value in summary.items()}
        | dict(said)
        for episode, found, said in zip(episodes, stats.episodes, beside, strict=True)
    ]
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: lake_meta.said_column([row.get(name) for row in rows]) for name in names})
