"""A repair changes what the rows prove and nothing else; it can be repeated, and a failed one changed nothing."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_lake.doctor import doctor
from data_lake.repair import LOG, repair
from data_lake.sources import open_source
from errors import UserError
from tests.data_lake.recordings import (
    change_episode_table,
    change_episodes,
    change_info,
    change_rows,
    write_lines,
    write_v2,
    write_v3,
)
from tests.data_lake.sources.test_odd_values import ODD, put, spots


def v2_folder(folder: Path) -> Path:
    return write_v2(folder / "v2")


def v3_folder(folder: Path) -> Path:
    return write_v3(folder / "v3", write_v2(folder / "v2"))


def digests(root: Path, *folders: str) -> dict[str, str]:
    files = (path for folder in folders or (".",) for path in (root / folder).rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def codes(root: Path) -> set[str]:
    return {item["code"] for item in doctor(str(root))["findings"]}


def without_line(source: Path) -> None:
    path = source / "meta/episodes_stats.jsonl"
    write_lines(path, [json.loads(line) for line in path.read_text().splitlines()[:2]])


def wrong_stats(source: Path) -> None:
    path = source / "meta/stats.json"
    stats = json.loads(path.read_text())
    stats["action"]["mean"][1] += 3
    stats["action"]["q99"] = stats["action"]["q50"]
    path.write_text(json.dumps(stats))


def move_ranges(source: Path) -> None:
    change_episode_table(source, 0, dataset_from_index=20, dataset_to_index=28)


DEFECTS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], object], set[str]]] = {
    "length": (v2_folder, lambda s: change_episodes(s, 1, length=99), {"LAKE-012", "LAKE-054"}),
    "length v3.0": (v3_folder, lambda s: change_episode_table(s, 1, length=0), {"LAKE-012", "LAKE-028", "LAKE-054"}),
    "ranges": (v3_folder, move_ranges, {"LAKE-028"}),
    "totals": (v2_folder, lambda s: change_info(s, total_frames=1, total_episodes=9), {"LAKE-054"}),
    "totals of v2": (v2_folder, lambda s: change_info(s, total_videos=1, total_chunks=0), {"LAKE-041", "LAKE-042"}),
    "splits": (v3_folder, lambda s: change_info(s, splits={"train": "0:2", "test": "2:90"}), {"LAKE-043"}),
    "version": (v2_folder, lambda s: change_info(s, codebase_version="v3.0"), {"LAKE-040"}),
    "no version": (v3_folder, lambda s: change_info(s, codebase_version=...), {"LAKE-060"}),
    "no statistics": (v3_folder, lambda s: (s / "meta/stats.json").unlink(), {"LAKE-053"}),
    "one episode's statistics": (v2_folder, without_line, {"LAKE-053"}),
    "other statistics": (v3_folder, wrong_stats, {"LAKE-142", "LAKE-144"}),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_what_the_rows_prove_is_mended(defect: str, tmp_path: Path) -> None:
    make, spoil, expected = DEFECTS[defect]
    source = make(tmp_path)
    sound = codes(source)
    spoil(source)
    assert expected <= codes(source)
    data, meta = digests(source, "data", "videos"), digests(source / "meta")
    changes = repair(source)
    assert changes and codes(source) == sound
    assert digests(source, "data", "videos") == data
    assert digests(source / "meta.before-repair-1") == meta
    logged = [json.loads(line) for line in (source / "meta" / LOG).read_text().splitlines()]
    assert [(item["file"], item["what"]) for item in logged] == [(item.file, item.what) for item in changes]
    assert all(str(item).startswith("meta/") and " -> " in str(item) for item in changes)
    after = digests(source)
    assert repair(source) == [] and digests(source) == after


@pytest.mark.parametrize("make", [v2_folder, v3_folder])
def test_a_sound_folder_is_left_alone(make: Callable[[Path], Path], tmp_path: Path) -> None:
    source = make(tmp_path)
    before = digests(source)
    assert repair(source) == [] and digests(source) == before


def test_unchanged_columns_and_files_stay_as_they_are(tmp_path: Path) -> None:
    source = v3_folder(tmp_path)
    file = "episodes/chunk-000/file-000.parquet"
    before, tasks = pq.read_table(source / "meta" / file), (source / "meta/tasks.parquet").read_bytes()
    change_episode_table(source, 2, length=7)
    repair(source)
    after = pq.read_table(source / "meta" / file)
    assert after.schema == before.schema and after.equals(before)
    assert (source / "meta/tasks.parquet").read_bytes() == tasks


def test_what_is_not_proved_is_not_changed(tmp_path: Path) -> None:
    """An episode without rows, and one whose file holds another's rows: totals and lengths stay as they are."""
    source = write_v2(tmp_path / "v2")
    (source / "data/chunk-000/episode_000000.parquet").unlink()
    change_rows(source / "data/chunk-000/episode_000001.parquet", episode_index=[5] * 12)
    for episode in range(3):
        change_episodes(source, episode, length=99)
    change_info(source, total_frames=4000)
    changes = repair(source)
    assert [(item.what, item.was, item.now) for item in changes] == [("episode 2 length", 99, 10)]


def broken_rename(call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The `call`-th rename fails."""
    calls: list[object] = []
    rename = os.rename

    def counted(*names: Any) -> None:
        calls.append(names)
        if len(calls) == call:
            raise OSError(28, "No space left on device")
        rename(*names)

    monkeypatch.setattr("data_lake.repair.os.rename", counted)


@pytest.mark.parametrize("call", [1, 2])
def test_a_failed_repair_changes_nothing(call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = v2_folder(tmp_path)
    change_episodes(source, 1, length=99)
    before = digests(source)
    with monkeypatch.context() as patched:
        broken_rename(call, patched)
        with pytest.raises(UserError) as error:
            repair(source)
    assert error.value.code == "LAKE-155" and "No space left" in error.value.message
    assert digests(source) == before
    assert repair(source)


def test_one_that_was_killed_between_its_renames(tmp_path: Path) -> None:
    source = v2_folder(tmp_path)
    change_info(source, total_frames=1)
    shutil.copytree(source / "meta", source / "meta.repairing")
    os.rename(source / "meta", source / "meta.before-repair-1")
    for read in (partial(doctor, str(source)), partial(open_source, source, source_format="lerobot")):
        with pytest.raises(UserError) as error:
            read()
        assert error.value.code == "LAKE-002" and error.value.next_step == f"./vlaloop doctor {source} --repair"
    assert [item.what for item in repair(source)] == ["total_frames"]
    assert not (source / "meta.repairing").exists() and (source / "meta.before-repair-1").is_dir()


def test_every_backup_is_kept(tmp_path: Path) -> None:
    source = v2_folder(tmp_path)
    for number in (1, 2):
        change_info(source, total_frames=number)
        repair(source)
    kept = [json.loads((source / f"meta.before-repair-{n}/info.json").read_text())["total_frames"] for n in (1, 2)]
    assert kept == [1, 2] and len((source / "meta" / LOG).read_text().splitlines()) == 2


@pytest.mark.parametrize("name", ["info.json", "episodes.jsonl", "stats.json", "episodes_stats.jsonl"])
@given(data=st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_odd_metadata_are_refused_or_mended(name: str, tmp_path: Path, data: st.DataObject) -> None:
    """Whatever value stands there: nothing is changed, or what is changed stays as it is the second time."""
    make = v3_folder if name == "stats.json" else v2_folder
    source = make(Path(tempfile.mkdtemp(dir=tmp_path)))
    path = source / "meta" / name
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    put(lines, data.draw(st.sampled_from(spots(lines))), data.draw(ODD))
    write_lines(path, lines)
    before = digests(source)
    refused = ""
    try:
        repair(source)
        assert repair(source) == []
    except UserError as error:
        refused = error.code
    if refused:
        assert (refused, digests(source)) == ("LAKE-004", before)
    assert digests(source, "data", "videos").items() <= before.items()


def test_what_is_no_lerobot_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        repair(tmp_path)
    assert error.value.code == "LAKE-154"


def test_gr1(shared_data: Path, tmp_path: Path) -> None:
    source = tmp_path / "gr1"
    shutil.copytree(shared_data / "lerobot-v2.0-gr1-picknplace", source)
    before = codes(source)
    repair(source)
    assert before - codes(source) == {"LAKE-041", "LAKE-042", "LAKE-043", "LAKE-051"}
