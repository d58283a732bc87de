"""LeRobot v3.0: many episodes per file, lists as parquet; each camera has its own file index and time span."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from data_lake.findings import Finding, finding
from data_lake.sources.episode import VideoSpan
from data_lake.sources.files import read_meta_parquet, unreadable_meta, well_formed
from data_lake.sources.instructions import listed_tasks, tasks_of
from data_lake.sources.listing import Listed, Listing, cameras_of, fill, why_left_out

DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO_PATH = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
_KNOWN = {"episode_index", "tasks", "length", "dataset_from_index", "dataset_to_index"}
PARTS = ("stats/", "meta/", "data/", "videos/")  # how the other columns of LeRobot begin


def list_v3(root: Path, info: Mapping[str, Any], *, has_videos: bool, stored_once: bool = False) -> Listing:
    """has_videos: whether the source holds a place for videos at all; one that was given away without them has no
    cameras. stored_once: episodes that show the same have the same span, as our own lake writes it. Raises UserError
    LAKE-004 when the tables under meta/ cannot be read."""
    with well_formed(root / "meta/episodes"):
        pictures = [key for dtype in ("image", "video") for key in cameras_of(info["features"], dtype)]
        entries = _episode_entries(root, tuple(f"stats/{key}/" for key in pictures))
        declared = cameras_of(info["features"], "video")
        spans = {key: _spans(root, info, entries, key) for key in declared}
        # a file that is named must be there
        cameras = tuple(key for key in declared if spans[key] and has_videos and "/" not in key)
        findings = [finding("LAKE-045", why_left_out(key), camera=key) for key in declared if key not in cameras]
        shared: dict[int, list[Finding]] = {}
        for key in cameras:
            for item in _overlaps(root, spans[key], key, float(info["fps"]), stored_once=stored_once):
                shared.setdefault(item.episode or 0, []).append(item)
        listed = []
        for entry in entries:
            views = {key: spans[key][entry["episode_index"]] for key in cameras if entry["episode_index"] in spans[key]}
            listed.append(_listed(root, info, entry, views, shared.get(entry["episode_index"], [])))
        findings += _tiling(entries) + _unlisted_files(root, listed)
    tasks, wordless = listed_tasks(root / "meta/tasks.parquet", _tasks(root))
    return Listing(episodes=tuple(listed), tasks=tasks, cameras=cameras, findings=tuple(findings), wordless=wordless)


def _episode_entries(root: Path, pictures: tuple[str, ...]) -> list[dict[str, Any]]:
    """pictures: how columns begin that nobody asks for."""
    tables = []
    for path in sorted((root / "meta/episodes").rglob("*.parquet")):
        table = read_meta_parquet(path)
        if "episode_index" not in table.column_names:
            raise unreadable_meta(path, "without a column episode_index")
        tables.append(table.drop_columns([name for name in table.column_names if name.startswith(pictures)]))
    entries = pa.concat_tables(tables, promote_options="permissive").to_pylist()
    return sorted(entries, key=lambda entry: entry["episode_index"])


def _tasks(root: Path) -> list[tuple[int, Any]]:
    """meta/tasks.parquet is a data frame whose index is the text, under whatever name."""
    path = root / "meta/tasks.parquet"
    if not path.exists():
        return []
    table = read_meta_parquet(path)
    texts = [field.name for field in table.schema if pa.types.is_string(field.type) or field.type == pa.large_string()]
    if "task_index" not in table.column_names or not texts:
        raise unreadable_meta(path, "without task_index and a column of text")
    text = "task" if "task" in texts else texts[0]
    return list(zip(table["task_index"].to_pylist(), table[text].to_pylist(), strict=True))


def _number(value: Any) -> float | None:
    return None if value is None or (isinstance(value, float) and math.isnan(value)) else float(value)


def _spans(
    root: Path, info: Mapping[str, Any], entries: Iterable[Mapping[str, Any]], camera: str
) -> dict[int, VideoSpan]:
    """By episode. Null or NaN columns say that the episode has no such view."""
    template = str(info.get("video_path") or VIDEO_PATH)
    spans = {}
    for entry in entries:
        names = ("chunk_index", "file_index", "from_timestamp", "to_timestamp")
        chunk, file, begin, end = (_number(entry.get(f"videos/{camera}/{name}")) for name in names)
        if chunk is None or file is None or begin is None or end is None:
            continue
        filled = fill(template, {"video_key": camera, "chunk_index": int(chunk), "file_index": int(file)})
        if filled is None:
            raise unreadable_meta(root / "meta/info.json", f"with a video_path that cannot be filled: {template!r}")
        spans[entry["episode_index"]] = VideoSpan(path=root / filled, from_s=begin, to_s=end)
    return spans


def _overlaps(
    root: Path, spans: Mapping[int, VideoSpan], camera: str, fps: float, *, stored_once: bool
) -> list[Finding]:
    """LAKE-014 for both of any two episodes that share frames: nothing tells which of them is right. stored_once: all
    of their frames they may share."""
    findings, slack = [], 0.5 / fps
    by_file: dict[Path, list[tuple[float, float, int]]] = {}
    for episode, span in spans.items():
        by_file.setdefault(span.path, []).append((span.from_s, span.to_s or 0.0, episode))
    for path, claims in by_file.items():
        claims.sort()
        reach, holder = -math.inf, -1
        for (begin, end, episode), before in zip(claims, [None, *claims], strict=False):
            if stored_once and before is not None and before[:2] == (begin, end):
                continue
            if begin < reach - slack:
                where = path.relative_to(root).as_posix()
                for one, other in ((holder, episode), (episode, holder)):
                    detail = f"{begin:.2f}-{min(end, reach):.2f} s is also episode {other}'s"
                    findings.append(finding("LAKE-014", detail, episode=one, camera=camera, file=where))
            if end > reach:
                reach, holder = end, episode
    return findings


def _listed(
    root: Path, info: Mapping[str, Any], entry: Mapping[str, Any], views: dict[str, VideoSpan], shared: list[Finding]
) -> Listed:
    template = str(info.get("data_path") or DATA_PATH)
    chunk, file = (_number(entry.get(f"data/{name}")) or 0.0 for name in ("chunk_index", "file_index"))
    filled = fill(template, {"chunk_index": int(chunk), "file_index": int(file)})
    length = entry.get("length")
    tasks, odd = tasks_of(entry.get("tasks"), int(entry["episode_index"]))
    return Listed(
        episode=int(entry["episode_index"]),
        length=None if length is None else int(length),
        tasks=tasks,
        data=root / filled if filled else None,
        views=views,
        extra={key: value for key, value in entry.items() if key not in _KNOWN and not key.startswith(PARTS)},
        statistics=_stated(entry),
        findings=(*shared, *odd),
    )


def _stated(entry: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Of columns `stats/<feature>/<statistic>`."""
    stated: dict[str, dict[str, Any]] = {}
    for key, value in entry.items():
        if key.startswith("stats/") and value is not None:
            feature, _, statistic = key.removeprefix("stats/").rpartition("/")
            stated.setdefault(feature, {})[statistic] = value
    return stated


def _tiling(entries: list[dict[str, Any]]) -> list[Finding]:
    """LAKE-028 once, naming the first episode whose range does not begin where the one before ended."""
    expected = None
    for entry in entries:
        begin, end = entry.get("dataset_from_index"), entry.get("dataset_to_index")
        if begin is None or end is None:
            return []
        if (expected is not None and begin != expected) or (entry.get("length") not in (None, end - begin)):
            detail = f"episode {entry['episode_index']} has {begin}:{end} and length {entry.get('length')}" + (
                f" where {expected} is next" if expected is not None else ""
            )
            return [finding("LAKE-028", detail, episode=entry["episode_index"])]
        expected = end
    return []


def _unlisted_files(root: Path, listed: Iterable[Listed]) -> list[Finding]:
    named = {item.data for item in listed}
    files = sorted((root / "data").rglob("*.parquet"))
    return [finding("LAKE-027", file=path.relative_to(root).as_posix()) for path in files if path not in named]
