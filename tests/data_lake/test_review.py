"""A source seen again: what is known is not opened, what changed is, and all that is said stays the same."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from data_lake import examine, review
from data_lake.edits.relabel import relabel
from data_lake.references import referenced
from data_lake.sources import bags, hdf5, lerobot, rlds
from data_lake.sources.episode import Episode
from data_lake.specs import IngestSpec, ReadSpec
from data_lake.tables import open_table, read_manifest, versions
from data_lake.video import VideoIndex, VideoUnreadable
from tests.data_lake.bag_recordings import READ, write_bags
from tests.data_lake.hdf5_recordings import write_robomimic
from tests.data_lake.recordings import (
    CAMERA,
    TASKS,
    change_rows,
    write_lines,
    write_v2,
    write_v3,
)
from tests.data_lake.rlds_recordings import record, write_rlds
from tests.data_lake.seen import content, ingest

LENGTHS = (8, 12, 10, 9)
SOURCES = (lerobot.LeRobotFolder, hdf5.Hdf5Demonstrations, rlds.RldsFolder, bags.RosBags)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the episodes that any source reads, one run of the ledger per part."""
    seen: list[int] = []

    def noting(episode: Callable[..., Episode]) -> Callable[..., Episode]:
        def noted(*args: Any, **kwargs: Any) -> Episode:
            found = episode(*args, **kwargs)
            seen.append(found.source_episode)
            return found

        return noted

    for source in SOURCES:
        monkeypatch.setattr(source, "_episode", noting(source._episode))
    monkeypatch.setattr(review, "RUN_EPISODES", 1)
    return seen


def of_v2(folder: Path) -> Path:
    """One episode repeats another, one is bad, one has a video as long as another episode, stated numbers are wrong."""
    write_v2(folder, LENGTHS)
    data, videos = folder / "data/chunk-000", folder / f"videos/chunk-000/{CAMERA}"
    shutil.copy(videos / "episode_000000.mp4", videos / "episode_000002.mp4")
    change_rows(data / "episode_000003.parquet", action=[[0.0, 9.0]] * LENGTHS[3])
    return folder


def of_v3(folder: Path) -> Path:
    return write_v3(folder, write_v2(folder.with_name("parts"), LENGTHS), LENGTHS)


def of_hdf5(folder: Path) -> Path:
    folder.mkdir()
    write_robomimic(folder / "b_1.hdf5", (6, 7))
    (folder / "b_2.hdf5").write_bytes(b"no such format")
    return write_robomimic(folder / "b_10.hdf5", (5,)).parent


def of_rlds(folder: Path) -> Path:
    shards = [[record(0, 4), record(1, 5)], [record(2, 6)]]
    write_rlds(folder, {"train": shards, "test": [[record(3, 4)]]})
    said = json.loads((folder / "dataset_info.json").read_text())
    said["splits"][0]["shardLengths"] = ["1", "1"]  # the first has one that nobody lists
    (folder / "dataset_info.json").write_text(json.dumps(said))
    return folder


def of_bags(folder: Path) -> Path:
    return write_bags(folder, (12, 14, 16))


UPRIGHT = ReadSpec(image_orientation="upright")
FORMATS: dict[str, tuple[Callable[[Path], Path], ReadSpec]] = {
    "v2": (of_v2, ReadSpec()),
    "v3": (of_v3, ReadSpec()),
    "hdf5": (of_hdf5, UPRIGHT),
    "rlds": (of_rlds, ReadSpec(fps="10")),
    "bags": (of_bags, READ),
}


def said(root: Path) -> dict[str, Any]:
    """What an ingest wrote of its source, without the version."""
    out = root.parent / f"{root.name}-out"
    written = {name: json.loads((out / f"{name}.json").read_text()) for name in ("episodes", "quarantine", "findings")}
    return {**written, "episodes": written["episodes"]["episodes"]}


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_again_reads_nothing_and_says_the_same(form: str, read: list[int], tmp_path: Path) -> None:
    write, spec = FORMATS[form]
    source, order = write(tmp_path / "source"), IngestSpec(dataset="cart", embodiment="cart", read=spec)
    first = ingest(source, tmp_path / "cart", order)
    before, whole = said(tmp_path / "cart"), len(read)
    read.clear()
    again = ingest(source, tmp_path / "cart", order)
    assert read == ([0, 3] if form == "rlds" else []), "but a shard with what is unlisted, numbered behind all others"
    assert (again.num_new, again.fingerprint) == (0, first.fingerprint) and said(tmp_path / "cart") == before
    read.clear()
    ingest(source, tmp_path / "anew", order, digests={})
    assert len(read) == whole and said(tmp_path / "anew") == before, "without the ledger nothing else is said"


def test_a_source_that_grew_is_read_where_it_grew(read: list[int], tmp_path: Path) -> None:
    root, source = tmp_path / "cart", write_v2(tmp_path / "source", LENGTHS)
    short = tmp_path / "short"
    write_v2(short, LENGTHS[:3])
    for name in ("data", "videos"):  # the first three as they are
        for path in (short / name).rglob("episode_*"):
            shutil.copy2(source / path.relative_to(short), path)
    ingest(short, root, label="cart")
    read.clear()
    write_lines(source / "meta/tasks.jsonl", [{"task_index": n, "task": t} for n, t in enumerate((*TASKS, "another"))])
    grown = ingest(source, root, label="cart")
    assert read == [3] and (grown.num_new, grown.num_episodes) == (1, 4)
    ingest(source, tmp_path / "anew", label="cart", digests={})
    steps, once = content(root), content(tmp_path / "anew")
    assert steps.pop("stats")["action"]["std"] == pytest.approx(once.pop("stats")["action"]["std"])
    assert steps == once and said(root) == said(tmp_path / "anew")


CHANGES: dict[str, Callable[[Path], object]] = {
    "rows": lambda source: change_rows(source / "data/chunk-000/episode_000001.parquet", action=[[0.5, 1.0]] * 12),
    "video": lambda source: shutil.copy(
        source / f"videos/chunk-000/{CAMERA}/episode_000003.mp4",
        source / f"videos/chunk-000/{CAMERA}/episode_000001.mp4",
    ),
    "listed": lambda source: write_lines(
        source / "meta/episodes.jsonl",
        [{"episode_index": n, "tasks": [TASKS[n % 2]], "length": e + (n == 1)} for n, e in enumerate(LENGTHS)],
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_is_read_again_and_nothing_else(change: str, read: list[int], tmp_path: Path) -> None:
    root, source = tmp_path / "cart", write_v2(tmp_path / "source", LENGTHS)
    ingest(source, root)
    read.clear()
    CHANGES[change](source)
    ingest(source, root)
    assert read == [1]
    ingest(source, tmp_path / "anew", digests={})
    hashes = [[each["content_hash"] for each in said(each)["episodes"]] for each in (root, tmp_path / "anew")]
    assert hashes[0] == hashes[1] and said(root)["findings"] == said(tmp_path / "anew")["findings"]


@pytest.mark.parametrize("what", ["a task's words", "the declared features", "how it is read"])
def test_what_holds_for_all_is_read_by_changes_all(what: str, read: list[int], tmp_path: Path) -> None:
    root, source = tmp_path / "cart", write_v2(tmp_path / "source", LENGTHS)
    order = IngestSpec(dataset="cart", embodiment="cart")
    ingest(source, root, order)
    read.clear()
    if what == "a task's words":
        write_lines(source / "meta/tasks.jsonl", [{"task_index": n, "task": t.upper()} for n, t in enumerate(TASKS)])
    elif what == "the declared features":
        info = json.loads((source / "meta/info.json").read_text())
        info["features"]["action"]["names"] = ["left", "right"]
        (source / "meta/info.json").write_text(json.dumps(info))
    else:
        order = IngestSpec(dataset="cart", embodiment="cart", read=ReadSpec(ignore_tasks=("valid",)))
    ingest(source, root, order)
    assert read == [0, 1, 2, 3]


def test_a_data_set_without_the_rows_reads_them(read: list[int], tmp_path: Path) -> None:
    """What the ledger knows does not fill a data set: only that of which the rows are there is left out."""
    source = write_v2(tmp_path / "source", LENGTHS)
    ingest(source, tmp_path / "cart")
    shutil.copytree(tmp_path / "cart/examined", tmp_path / "other/examined")
    read.clear()
    assert ingest(source, tmp_path / "other").num_new == 4 and read == [0, 1, 2, 3]


def test_a_recording_that_others_now_follow_is_known(read: list[int], tmp_path: Path) -> None:
    root, source = tmp_path / "cart", write_bags(tmp_path / "source", (12, 14))
    order = IngestSpec(dataset="cart", embodiment="cart", read=READ)
    ingest(source, root, order)
    read.clear()
    (source / "bag_9").rename(source / "bag_7")
    again = ingest(source, root, order)
    assert (again.num_new, [each["length"] for each in again.view["episodes"]]) == (0, [14, 12])
    assert read == [0, 1], "the ledger knows places"


def test_a_row_that_points_past_the_list_is_not_settled(read: list[int], tmp_path: Path) -> None:
    """A longer list of tasks may still say what it means."""
    root, source = tmp_path / "cart", write_v2(tmp_path / "source", LENGTHS)
    change_rows(source / "data/chunk-000/episode_000002.parquet", task_index=[2] * 10)
    ingest(source, root)
    read.clear()
    write_lines(source / "meta/tasks.jsonl", [{"task_index": n, "task": t} for n, t in enumerate((*TASKS, "another"))])
    assert ingest(source, root).view["episodes"][2]["instruction"] == "another" and read == [2]


def test_a_repetition_is_told_of_the_later_one_known_or_not(read: list[int], tmp_path: Path) -> None:
    root, source = tmp_path / "cart", write_v2(tmp_path / "source", (6, 6, 6))
    ingest(source, root)
    read.clear()
    videos = source / f"videos/chunk-000/{CAMERA}"
    shutil.copy(videos / "episode_000000.mp4", videos / "episode_000002.mp4")
    again = ingest(source, root)
    assert read == [2] and [item.episode for item in again.findings if item.code == "LAKE-033"] == [2]


def test_what_could_not_be_read_is_tried_again(
    read: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk was to blame, not the file; its neighbours are known all the same."""
    monkeypatch.setattr(review, "RUN_EPISODES", 32)
    root, source, index = tmp_path / "cart", write_v2(tmp_path / "source", LENGTHS), examine.index_video

    def failing(path: Path, digest: str | None = None) -> VideoIndex:
        if path.stem == "episode_000001":
            raise VideoUnreadable("the demuxer says: Input/output error")
        return index(path, digest)

    with monkeypatch.context() as broken:
        broken.setattr(examine, "index_video", failing)
        assert (ingest(source, root).num_quarantined, read) == (1, [0, 1, 2, 3])
    read.clear()
    again = ingest(source, root)
    assert (again.num_quarantined, again.num_new, read) == (0, 1, [1])


def test_a_file_of_unlisted_rows_is_read_until_they_are_listed(read: list[int], tmp_path: Path) -> None:
    """What is said of them depends on the whole list."""
    source = of_v3(tmp_path / "source")
    listed = source / "meta/episodes/chunk-000/file-000.parquet"
    whole = listed.read_bytes()
    table = pq.read_table(listed)
    pq.write_table(table.slice(0, 3), listed)
    for _ in range(2):
        read.clear()
        found = ingest(source, tmp_path / "cart").findings
        assert "LAKE-027" in {item.code for item in found} and read == [0, 1, 2]
    listed.write_bytes(whole)
    assert "LAKE-027" not in {item.code for item in ingest(source, tmp_path / "cart").findings}


def test_an_edit_in_between_stays(read: list[int], tmp_path: Path) -> None:
    root, source = tmp_path / "lake/datasets/cart", write_v2(tmp_path / "source", LENGTHS)
    ingest(source, root)
    relabel(tmp_path / "lake", "cart", [("1", "fetch the cart")], who="ada")
    read.clear()
    again = ingest(source, root)
    assert (again.num_new, versions(root), read) == (0, [1, 2], [])
    assert again.view["episodes"][1]["instruction"] == "fetch the cart"


def left_in(root: Path) -> list[Path]:
    manifest = read_manifest(root)
    assert manifest is not None
    return sorted(referenced(open_table(root, manifest, "videos")).values())


def test_videos_that_stay_where_they_are(read: list[int], tmp_path: Path) -> None:
    """Not opened while they are there; those that moved are, and those that are to be stored."""
    root, source = tmp_path / "cart", write_v2(tmp_path / "source", LENGTHS)
    copied, left = (IngestSpec(dataset="cart", embodiment="cart", copy=how) for how in ("copy", "reference"))
    ingest(source, root, left)
    read.clear()
    ingest(source, root, left)
    assert (read, versions(root), left_in(root)) == ([], [1], sorted(source.rglob("*.mp4")))
    moved = source.rename(tmp_path / "elsewhere")
    ingest(moved, root, left)
    assert (read, versions(root), left_in(root)) == ([0, 1, 2, 3], [1, 2], sorted(moved.rglob("*.mp4")))
    read.clear()
    ingest(moved, root, copied)
    assert (read, versions(root), left_in(root)) == ([0, 1, 2, 3], [1, 2, 3], [])
    read.clear()
    for spec in (copied, left):
        ingest(moved, root, spec)
        assert (read, versions(root), left_in(root)) == ([], [1, 2, 3], [])
