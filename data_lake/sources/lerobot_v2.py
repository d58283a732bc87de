"""LeRobot v2.0 and v2.1: one parquet and one mp4 per episode and camera, lists as JSON lines.

Files are found by their episode number where the path template does not lead to them (GR00T's demo data).
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from data_lake.findings import Finding, finding
from data_lake.sources.episode import VideoSpan
from data_lake.sources.files import ODD, read_meta_lines, unreadable_meta, well_formed
from data_lake.sources.instructions import listed_tasks, tasks_of
from data_lake.sources.listing import Listed, Listing, cameras_of, fill, why_left_out
from errors import UserError

LARGEST = 2**63 - 1  # that 64 bits can count
_NUMBER = re.compile(r"^episode_(\d+)\.(?:parquet|mp4)$")
DATA_PATH = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
VIDEO_PATH = "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"


def list_v2(root: Path, info: Mapping[str, Any]) -> Listing:
    """Raises UserError LAKE-004 when meta/episodes.jsonl or meta/tasks.jsonl cannot be read."""
    entries = _episode_entries(root)
    tasks, wordless = dict[int, str](), dict[int, str]()
    if (path := root / "meta/tasks.jsonl").exists():
        with well_formed(path):
            lines = ((int(line["task_index"]), line["task"]) for line in read_meta_lines(path))
            tasks, wordless = listed_tasks(path, lines)
    videos = _by_camera(root / "videos")
    declared = cameras_of(info["features"], "video")
    cameras = tuple(key for key in declared if key in videos) if info["features"] else tuple(sorted(videos))
    data = _by_number(root / "data", "*.parquet")
    with well_formed(root / "meta/info.json"):
        places = _Places(root, info, data, videos)
    with well_formed(root / "meta/episodes.jsonl"):
        stated = stated_by_episode(root)
        listed = tuple(_listed(entry, places, cameras, stated) for entry in entries)
    findings = [finding("LAKE-045", why_left_out(key), camera=key) for key in declared if key not in videos]
    findings += places.wrong_templates(entries, cameras)
    numbers = {entry["episode_index"] for entry in entries}
    findings += [
        finding("LAKE-027", episode=number, file=path.relative_to(root).as_posix())
        for number, path in sorted(data.items())
        if number not in numbers
    ]
    return Listing(episodes=listed, tasks=tasks, cameras=cameras, findings=tuple(findings), wordless=wordless)


def _episode_entries(root: Path) -> list[dict[str, Any]]:
    entries, path = [], root / "meta/episodes.jsonl"
    for number, line in enumerate(read_meta_lines(path), start=1):
        if not isinstance(index := line.get("episode_index"), int) or not -LARGEST <= index <= LARGEST:
            raise unreadable_meta(path, f"without an episode_index in entry {number}")
        entries.append(line)
    return sorted(entries, key=lambda entry: entry["episode_index"])


def stated_by_episode(root: Path) -> dict[int, dict[str, Any]] | None:
    """Statistics by episode, where the source has them (v2.1). Lines that cannot be read are left out: rows need
    none."""
    path = root / "meta/episodes_stats.jsonl"
    if not path.is_file():
        return None
    stated: dict[int, dict[str, Any]] = {}
    with suppress(UserError):
        for line in read_meta_lines(path):
            with suppress(*ODD):
                stated[int(line["episode_index"])] = {key: dict(value) for key, value in line["stats"].items()}
    return stated


def _by_number(folder: Path, pattern: str) -> dict[int, Path]:
    matches = ((_NUMBER.match(path.name), path) for path in sorted(folder.rglob(pattern)))
    return {int(match[1]): path for match, path in matches if match}


def _by_camera(folder: Path) -> dict[str, dict[int, Path]]:
    videos: dict[str, dict[int, Path]] = {}
    for path in sorted(folder.rglob("*.mp4")):
        if match := _NUMBER.match(path.name):
            videos.setdefault(path.parent.name, {})[int(match[1])] = path
    return videos


class _Places:
    """Where an episode's files are: where the template says, else where their number is found."""

    def __init__(
        self, root: Path, info: Mapping[str, Any], data: dict[int, Path], videos: dict[str, dict[int, Path]]
    ) -> None:
        self.root = root
        self.data_path = str(info.get("data_path") or DATA_PATH)
        self.video_path = str(info.get("video_path") or VIDEO_PATH)
        self.chunk_size = int(info.get("chunks_size") or 1000)
        self.data_files = data
        self.video_files = videos
        self._looked: dict[tuple[int, str | None], Path | None] = {}

    def templated(self, episode: int, camera: str | None = None) -> Path | None:
        if (episode, camera) not in self._looked:
            self._looked[episode, camera] = self._look(episode, camera)
        return self._looked[episode, camera]

    def _look(self, episode: int, camera: str | None) -> Path | None:
        path = self.expected(episode, camera)
        return path if path is not None and path.is_file() else None

    def expected(self, episode: int, camera: str | None = None) -> Path | None:
        """Where the template says that it is; None when it cannot be filled."""
        values: dict[str, int | str] = {"episode_index": episode, "episode_chunk": episode // self.chunk_size}
        if camera is not None:
            values["video_key"] = camera
        filled = fill(self.data_path if camera is None else self.video_path, values)
        return self.root / filled if filled else None

    def rows_file(self, episode: int) -> Path | None:
        """Where the rows are, or where they are missing."""
        return self.templated(episode) or self.data_files.get(episode) or self.expected(episode)

    def video_file(self, episode: int, camera: str) -> Path | None:
        return self.templated(episode, camera) or self.video_files[camera].get(episode)

    def wrong_templates(self, entries: list[dict[str, Any]], cameras: tuple[str, ...]) -> list[Finding]:
        """LAKE-044 for each template that misses files which are there."""
        findings = []
        for name, template, keys in (("data_path", self.data_path, (None,)), ("video_path", self.video_path, cameras)):
            missed = [
                entry["episode_index"]
                for entry in entries
                for key in keys
                if entry["episode_index"] in (self.data_files if key is None else self.video_files[key])
                and self.templated(entry["episode_index"], key) is None
            ]
            if missed:
                detail = f"{name} {template!r} misses {len(missed)} files, the first of episode {missed[0]}"
                findings.append(finding("LAKE-044", detail, file="meta/info.json"))
        return findings


def _listed(
    entry: Mapping[str, Any], places: _Places, cameras: tuple[str, ...], stated: dict[int, dict[str, Any]] | None
) -> Listed:
    episode = int(entry["episode_index"])
    views, findings = {}, []
    for key in cameras:
        path = places.video_file(episode, key)
        if path is None:
            missing = places.expected(episode, key)
            file = missing.relative_to(places.root).as_posix() if missing else None
            findings.append(finding("LAKE-010", episode=episode, camera=key, file=file))
        else:
            views[key] = VideoSpan(path=path, from_s=0.0, to_s=None)
    if stated is not None and episode not in stated:
        findings.append(
            finding(
                "LAKE-053", "none that can be read of this episode", episode=episode, file="meta/episodes_stats.jsonl"
            )
        )
    tasks, odd = tasks_of(entry.get("tasks"), episode)
    known = {"episode_index", "tasks", "length"}
    length = entry.get("length", entry.get("num_frames"))
    return Listed(
        episode=episode,
        length=int(length) if isinstance(length, int | float) else None,
        tasks=tasks,
        data=places.rows_file(episode),
        views=views,
        extra={key: value for key, value in entry.items() if key not in known},
        statistics=(stated or {}).get(episode, {}),
        findings=(*findings, *odd),
    )
