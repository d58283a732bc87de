"""Relabelling: the same hash as if the source had said so, nothing else touched, and the source known again."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from data_lake.doctor import doctor
from data_lake.edits.edit import Edited
from data_lake.edits.relabel import relabel
from data_lake.exports import publish_folder
from data_lake.files import tree
from data_lake.head import look_at_head
from data_lake.sources.lerobot import LeRobotFolder
from data_lake.tables import open_table, read_manifest, versions
from data_lake.version import open_version
from errors import Transient, UserError
from tests.data_lake.recordings import TASKS, write_lines, write_v2, write_v3
from tests.data_lake.seen import LENGTHS, content, ingest

NEW = "put the cube into the red box"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    ingest(write_v2(tmp_path / "v2", LENGTHS), tmp_path / "lake/datasets/cart")
    return tmp_path / "lake"


def again(lake: Path, *labels: tuple[str, str]) -> Edited:
    return relabel(lake, "cart", labels, who="ada")


def hashes(lake: Path, named: str = "cart") -> list[str]:
    return [row["content_hash"] for row in open_version(lake, named).episodes]


def saying(source: Path, episode: int, text: str) -> Path:
    """A v2 folder in which that episode has another task, as the recorder would have written it."""
    write_lines(source / "meta/tasks.jsonl", [{"task_index": n, "task": each} for n, each in enumerate((*TASKS, text))])
    path = source / "meta/episodes.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[episode]["tasks"] = [text]
    write_lines(path, lines)
    rows = source / f"data/chunk-000/episode_{episode:06d}.parquet"
    table = pq.read_table(rows)
    place = table.column_names.index("task_index")
    pq.write_table(table.set_column(place, "task_index", [np.full(table.num_rows, len(TASKS))]), rows)
    return source


def test_it_is_as_if_the_source_had_said_so(lake: Path, tmp_path: Path) -> None:
    made = again(lake, ("1", NEW))
    assert (made.version, made.is_new, made.told) == (2, True, {"num_episodes": 1, "instructions": [NEW]})
    other = tmp_path / "other"
    ingest(saying(write_v2(tmp_path / "said", LENGTHS), 1, NEW), other / "datasets/cart")
    assert hashes(lake) == hashes(other)
    assert look_at_head(lake, "lake:cart").fingerprint == look_at_head(other, "lake:cart").fingerprint
    found, wanted = content(lake / "datasets/cart"), content(other / "datasets/cart")
    for each in (found, wanted):
        numbers = each["frames"].pop("task_index")
        each["said"] = [each["tasks"]["task"][number] for number in numbers]
    assert found["tasks"] == {"task_index": [0, 1], "task": [TASKS[0], NEW]}, (
        "in the place of what nobody says any more"
    )
    assert [found[name] for name in ("frames", "said", "stats")] == [
        wanted[name] for name in ("frames", "said", "stats")
    ]
    episodes = {name: column for name, column in found["episodes"].items() if name != "came_as"}
    assert episodes == wanted["episodes"]


def test_nothing_else_is_touched(lake: Path) -> None:
    root = lake / "datasets/cart"
    ingest(write_v2(root.parent.parent / "more", (8, 12, 10, 6)), root)
    before, files = content(root), {path: path.stat().st_mtime_ns for path in tree(root)}
    old = hashes(lake)
    again(lake, ("3", NEW))
    assert content(root, 2) == before, "the version before reads as it did"
    now = {path: path.stat().st_mtime_ns for path in tree(root) if path in files}
    assert {path.name for path in files if now.get(path) != files[path]} <= {"latest_version_hint.json"}
    first, second = (read_manifest(root, version) for version in (2, 3))
    assert first is not None and second is not None
    assert second.vector["videos"] == first.vector["videos"]
    held = [
        {file.path for fragment in open_table(root, each, "frames").get_fragments() for file in fragment.data_files()}
        for each in (first, second)
    ]
    assert len(held[0]) == 2 and len(held[0] & held[1]) == 1, "one fragment of two was written again"
    assert [here == there for here, there in zip(old, hashes(lake), strict=True)] == [True, True, True, False]
    assert doctor("cart", lake=lake)["findings"] == []


def test_the_source_is_known_again(lake: Path, tmp_path: Path) -> None:
    """Ingesting the recordings once more adds nothing, and gives them as they are now."""
    again(lake, ("0", NEW))
    found = ingest(tmp_path / "v2", lake / "datasets/cart")
    assert (found.num_new, found.view["version"]) == (0, 2)
    assert [entry["instruction"] for entry in found.view["episodes"]] == [NEW, TASKS[1], TASKS[0]]
    told = doctor(str(tmp_path / "v2"), lake=lake)["findings"]
    assert [each["code"] for each in told if each["episode"] == 0] == ["LAKE-148"], "doctor finds it in the lake, too"
    more = ingest(write_v2(tmp_path / "more", (8, 12, 10, 6)), lake / "datasets/cart")
    assert (more.num_new, [row["episode_index"] for row in open_version(lake, "cart").episodes]) == (1, [0, 1, 2, 3])


def test_back_again_is_what_it_was(lake: Path) -> None:
    before, fingerprint = hashes(lake), look_at_head(lake, "lake:cart").fingerprint
    again(lake, ("0", NEW), ("1-2", "wait"))
    assert not {*hashes(lake)} & {*before}
    again(lake, ("0,2", TASKS[0]), ("1", TASKS[1]))
    assert hashes(lake) == before and look_at_head(lake, "lake:cart").fingerprint == fingerprint
    assert not any(row["came_as"] for row in open_version(lake, "cart").episodes)
    assert not again(lake, ("0", TASKS[0])).is_new
    assert versions(lake / "datasets/cart") == [1, 2, 3]


def test_two_that_become_the_same_stay_two(lake: Path, tmp_path: Path) -> None:
    """The same recording under another label came in as an episode of its own."""
    root = lake / "datasets/cart"
    ingest(saying(write_v2(tmp_path / "said", LENGTHS), 1, NEW), root)
    assert len(hashes(lake)) == 4
    again(lake, ("1", NEW))
    assert hashes(lake)[1] == hashes(lake)[3]
    ingest(write_v2(tmp_path / "more", (8, 12, 10, 6)), root)
    assert [row["episode_index"] for row in open_version(lake, "cart").episodes] == [0, 1, 2, 3, 4]
    assert {each["code"] for each in doctor("cart", lake=lake)["findings"]} == {"LAKE-147"}


@pytest.mark.parametrize("older", [False, True])
def test_doctor_knows_a_recording_under_other_words(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, older: bool
) -> None:
    """In the data set, beside it, and in a source that has it twice."""
    if older:
        monkeypatch.setattr("data_lake.examine.recording_digest", lambda *_: "")
    root = lake / "datasets/coat"
    for folder in (write_v2(tmp_path / "coat", LENGTHS), saying(write_v2(tmp_path / "said", LENGTHS), 1, NEW)):
        ingest(folder, root)
    found = {each["code"]: each for each in doctor("coat", lake=lake)["findings"]}
    assert (found["LAKE-147"]["episode"], found["LAKE-147"]["message"].partition(": ")[2]) == (
        3,
        "of episode 1, under other words",
    )
    assert found["LAKE-148"]["message"].endswith("episode 0 of cart (and in 3 more episodes)")
    if not older:
        publish_folder(open_version(lake, "coat"), tmp_path / "out", "v2.1")
        (again,) = [each for each in doctor(str(tmp_path / "out"))["findings"] if each["code"] == "LAKE-147"]
        assert (again["episode"], again["message"].partition(": ")[2]) == (3, "of episode 1, under other words")


def test_episodes_that_share_a_video(tmp_path: Path) -> None:
    """v3.0: one mp4 of all episodes."""
    lake, v2 = tmp_path / "lake", write_v2(tmp_path / "v2", LENGTHS)
    ingest(write_v3(tmp_path / "v3", v2, LENGTHS), lake / "datasets/cart")
    again(lake, ("1", NEW))
    ingest(saying(v2, 1, NEW), tmp_path / "other/datasets/cart")
    assert hashes(lake) == hashes(tmp_path / "other")


def test_it_can_be_published(lake: Path, tmp_path: Path) -> None:
    again(lake, ("1", NEW))
    publish_folder(open_version(lake, "cart"), tmp_path / "out", "v3.0")
    ingest(tmp_path / "out", tmp_path / "other/datasets/cart")
    assert hashes(lake) == hashes(tmp_path / "other")
    assert "came_as" not in open_version(tmp_path / "other", "cart").episodes[0]


def test_what_nobody_says_is_not_published(lake: Path, tmp_path: Path) -> None:
    """Where readers take the index for a place in the table (v3.0), as far as it stands behind what is said."""
    again(lake, ("0-2", TASKS[0]))
    version = open_version(lake, "cart")
    assert version.tasks == {TASKS[0]: 0, TASKS[1]: 1}, "numbers of the lake stay as they are"
    for form in ("v2.1", "v3.0"):
        publish_folder(version, tmp_path / form, form)
        card = LeRobotFolder(tmp_path / form).card
        assert [item.code for item in card.findings if item.code == "LAKE-145"] == []
        assert json.loads((tmp_path / form / "meta/info.json").read_text())["total_tasks"] == 1
    assert len((tmp_path / "v2.1/meta/tasks.jsonl").read_text().splitlines()) == 1
    again(lake, ("0-2", TASKS[1]))
    publish_folder(open_version(lake, "cart"), tmp_path / "last", "v3.0")
    listed = pq.read_table(tmp_path / "last/meta/tasks.parquet")["task"].to_pylist()
    rows = pq.read_table(tmp_path / "last/data/chunk-000/file-000.parquet")["task_index"].to_pylist()
    assert {listed[number] for number in rows} == {TASKS[1]}


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([("7", NEW)], "no episode 7"),
        ([("0", NEW), ("x", NEW)], "not an episode"),
        ([("0", " ")], "not an instruction"),
        ([("0", "a\0b")], "not an instruction"),
        ([("0", "a\ud83d")], "not an instruction"),
        ([("0", "x" * 4097)], "not an instruction"),
        ([("0-1", NEW), ("1", "wait")], "two instructions for episode 1"),
    ],
)
def test_bad_labels_change_nothing(lake: Path, labels: list[Any], words: str) -> None:
    files = list(tree(lake))
    with pytest.raises(UserError, match=words) as refused:
        again(lake, *labels)
    code = {"no episode 7": "LAKE-208", "not an episode": "LAKE-207"}.get(words, "LAKE-181")
    assert refused.value.code == code and list(tree(lake)) == files


def test_what_is_not_as_it_was_ingested_is_not_relabelled(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = open_version(lake, "cart")
    version.episodes[1]["content_hash"] = "0" * 64
    monkeypatch.setattr("data_lake.edits.relabel.version_before", lambda *_: version)
    with pytest.raises(UserError, match="another content hash") as refused:
        again(lake, ("1", NEW))
    assert refused.value.code == "LAKE-186" and versions(lake / "datasets/cart") == [1]


def test_of_an_edit_and_an_ingest_at_once_none_is_lost(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ingest gets in between; the edit begins again on what it made."""
    import data_lake.edits.relabel as module

    more, look = write_v2(tmp_path / "more", (8, 12, 10, 6)), module._meta
    rivals = [1]

    def meanwhile(*args: Any) -> dict[str, bytes]:
        if rivals:
            rivals.pop()
            ingest(more, lake / "datasets/cart")
        return look(*args)

    monkeypatch.setattr(module, "_meta", meanwhile)
    assert again(lake, ("0", NEW)).version == 3
    assert [row["instruction"] for row in open_version(lake, "cart").episodes] == [NEW, TASKS[1], TASKS[0], TASKS[1]]
    assert len(open_version(lake, "cart@2").episodes) == 4


def test_rivals_without_end_are_said(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("data_lake.writer.put_if_absent", lambda *_: False)
    monkeypatch.setattr("data_lake.edits.edit.TRIES", 2)
    with pytest.raises(Transient):
        again(lake, ("0", NEW))
