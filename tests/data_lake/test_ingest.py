"""Ingest from end to end: what enters, what does not, once, whatever crashes and whoever else writes."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from data_lake import lake_meta
from data_lake.ingest import Ingested, ingest_source
from data_lake.specs import IngestSpec
from data_lake.tables import open_table, read_manifest, read_meta, versions
from errors import UserError
from tests.data_lake.crashing_ingest import SPEC, STEPS
from tests.data_lake.recordings import (
    CAMERA,
    TASKS,
    change_episode_table,
    change_episodes,
    change_rows,
    write_v2,
    write_v3,
)

LENGTHS = (8, 12, 10)


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    return write_v2(tmp_path / "v2", LENGTHS)


def ingest(source: Path, root: Path, spec: IngestSpec = SPEC, **options: Any) -> Ingested:
    return ingest_source(source, spec, dataset_root=root, out_dir=root.parent / f"{root.name}-out", **options)


def content(root: Path, version: int | None = None) -> dict[str, Any]:
    """All that a reader sees of a version, without what only says where and when."""
    manifest = read_manifest(root, version)
    assert manifest is not None
    videos = open_table(root, manifest, "videos").to_table(columns=["video_key", "file_index", "sha256"])
    meta = read_meta(root, manifest)
    return {
        "frames": open_table(root, manifest, "frames").to_table().to_pydict(),
        "videos": videos.to_pydict(),
        "episodes": lake_meta.read_table(meta[lake_meta.EPISODES]).drop_columns(["source"]).to_pydict(),
        "tasks": lake_meta.read_table(meta[lake_meta.TASKS]).to_pydict(),
        "info": json.loads(meta[lake_meta.INFO]),
        "stats": json.loads(meta[lake_meta.STATS]),
        "counts": (manifest.num_episodes, manifest.num_frames, manifest.num_videos),
    }


def findings(root: Path) -> list[tuple[str, int | None]]:
    items = json.loads((root.parent / f"{root.name}-out/findings.json").read_text())
    return [(item["code"], item["episode"]) for item in items]


def test_the_view_and_the_tables(v2: Path, tmp_path: Path) -> None:
    root = tmp_path / "cart"
    done = ingest(v2, root)
    assert (done.num_episodes, done.num_quarantined, done.num_frames, done.num_new) == (3, 0, 30, 3)
    view = json.loads((tmp_path / "cart-out/episodes.json").read_text())
    assert view == done.view
    assert [(each["from_index"], each["to_index"]) for each in view["episodes"]] == [(0, 8), (8, 20), (20, 30)]
    assert view["episodes"][1]["instruction"] == TASKS[1]
    assert view["episodes"][1]["views"] == {
        "front": {"video_key": CAMERA, "chunk_index": 0, "file_index": 1, "from_s": 0.0, "to_s": 1.2}
    }
    assert view["meaning"]["fps"] == 10.0 and view["meaning"]["colour_order"] == "rgb"
    seen = content(root)
    assert seen["frames"]["index"] == list(range(30))
    assert seen["frames"]["frame_index"][8:10] == [0, 1]
    assert seen["info"]["storage_format"] == "lance" and seen["info"]["total_frames"] == 30
    assert seen["stats"]["observation.state"]["max"] == [5.5, 2.0, 1.0]
    assert seen["stats"]["observation.state"]["count"] == [30]
    assert seen["episodes"]["content_hash"] == [each["content_hash"] for each in view["episodes"]]


def test_again_changes_nothing(v2: Path, tmp_path: Path) -> None:
    root = tmp_path / "cart"
    first = ingest(v2, root)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    for _ in range(2):
        again = ingest(v2, root)
        assert (again.num_new, again.view, again.fingerprint) == (0, first.view, first.fingerprint)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_a_longer_source_appends_only_what_is_new(tmp_path: Path) -> None:
    root = tmp_path / "cart"
    first = ingest(write_v2(tmp_path / "a", LENGTHS[:2]), root)
    second = ingest(write_v2(tmp_path / "b", LENGTHS), root)
    assert (second.num_new, second.num_episodes, versions(root)) == (1, 3, [1, 2])
    assert second.view["episodes"][:2] == first.view["episodes"]
    assert content(root, 1)["frames"]["index"] == list(range(20))
    whole = tmp_path / "whole"
    ingest(tmp_path / "b", whole)
    steps, once = content(root), content(whole)
    assert steps.pop("stats")["action"]["std"] == pytest.approx(once.pop("stats")["action"]["std"])
    assert steps == once, "in two steps or in one"


def test_versions_of_the_format_are_the_same_episodes(v2: Path, tmp_path: Path) -> None:
    v3 = write_v3(tmp_path / "v3", v2, LENGTHS)
    one, other = ingest(v2, tmp_path / "one"), ingest(v3, tmp_path / "other")
    hashes = [[each["content_hash"] for each in done.view["episodes"]] for done in (one, other)]
    assert hashes[0] == hashes[1] and one.fingerprint == other.fingerprint
    assert content(tmp_path / "other")["counts"] == (3, 30, 1), "a joint mp4 is stored once"
    assert (
        other.view["episodes"][2]["views"]["front"] | {"from_s": 2.0, "to_s": 3.0}
        == (other.view["episodes"][2]["views"]["front"])
    )
    assert ingest(v3, tmp_path / "one").num_new == 0


def test_a_missing_view_is_no_defect(tmp_path: Path) -> None:
    second = "observation.images.wrist"
    v2 = write_v2(tmp_path / "v2", LENGTHS, (CAMERA, second))
    v3 = write_v3(tmp_path / "v3", v2, LENGTHS, (CAMERA, second), without=[(1, second)])
    done = ingest(v3, tmp_path / "cart")
    assert [sorted(each["views"]) for each in done.view["episodes"]] == [
        ["front", "wrist"],
        ["front"],
        ["front", "wrist"],
    ]
    assert done.view["episodes"][0]["extra"] == {"seed": 100}
    again = ingest(v3, tmp_path / "cart")
    assert again.view == done.view and again.num_new == 0


def break_footer(source: Path) -> None:
    path = source / "data/chunk-000/episode_000001.parquet"
    os.truncate(path, path.stat().st_size - 300)


def swap_videos(source: Path) -> None:
    """D10: seen by length only."""
    one, other = (source / f"videos/chunk-000/{CAMERA}/episode_{number:06d}.mp4" for number in (0, 1))
    first = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(first)


def rows_file(source: Path, number: int) -> Path:
    return source / f"data/chunk-000/episode_{number:06d}.parquet"


def video_file(source: Path, number: int) -> Path:
    return source / f"videos/chunk-000/{CAMERA}/episode_{number:06d}.mp4"


DEFECTS: dict[str, tuple[Callable[[Path], object], dict[int, str]]] = {
    "no footer": (break_footer, {1: "LAKE-007"}),
    "pointer": (lambda s: rows_file(s, 2).write_text("version https://git-lfs.github.com/spec/v1\n"), {2: "LAKE-008"}),
    "pointer to a video": (
        lambda s: video_file(s, 2).write_text("version https://git-lfs.github.com/spec/v1\n"),
        {2: "LAKE-008"},
    ),
    "no rows file": (lambda s: rows_file(s, 0).unlink(), {0: "LAKE-009"}),
    "no video": (lambda s: video_file(s, 0).unlink(), {0: "LAKE-010"}),
    "swapped videos": (swap_videos, {0: "LAKE-011", 1: "LAKE-011"}),
    "wrong length": (lambda s: change_episodes(s, 0, length=9), {0: "LAKE-012"}),
    "length zero": (lambda s: change_episodes(s, 1, length=0), {1: "LAKE-012"}),
    "not finite": (
        lambda s: change_rows(rows_file(s, 1), action=[[0.0, 0.0]] * 11 + [[0.0, float("nan")]]),
        {1: "LAKE-016"},
    ),
    "unordered": (
        lambda s: change_rows(rows_file(s, 0), timestamp=[0.0, 0.3, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8]),
        {0: "LAKE-017"},
    ),
    "repeated frame": (lambda s: change_rows(rows_file(s, 0), frame_index=[0, 1, 1, 3, 4, 5, 6, 7]), {0: "LAKE-018"}),
    "other type": (lambda s: change_rows(rows_file(s, 0), action=["up"] * 8), {0: "LAKE-019"}),
    "other width": (lambda s: change_rows(rows_file(s, 0), action=[[0.0] * 5] * 8), {0: "LAKE-019"}),
    "other episode": (lambda s: change_rows(rows_file(s, 2), episode_index=[5] * 10), {2: "LAKE-021"}),
    "garbage": (lambda s: rows_file(s, 2).write_bytes(b"PAR1" + b"\0" * 500 + b"PAR1"), {2: "LAKE-022"}),
    "cut video": (lambda s: os.truncate(video_file(s, 2), 900), {2: "LAKE-023"}),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_bad_episode_goes_to_quarantine_and_the_others_do_not(defect: str, v2: Path, tmp_path: Path) -> None:
    spoil, expected = DEFECTS[defect]
    spoil(v2)
    root = tmp_path / "cart"
    done = ingest(v2, root)
    kept = [number for number in range(3) if number not in expected]
    assert [each["source_episode"] for each in done.view["episodes"]] == kept
    assert done.num_episodes + done.num_quarantined == 3
    quarantine = json.loads((tmp_path / "cart-out/quarantine.json").read_text())
    assert {bad["episode"]: bad["findings"][0]["code"] for bad in quarantine} == expected
    for bad in quarantine:
        assert bad["done"] and all(item["fix"] and item["message"] for item in bad["findings"])
    lengths = [LENGTHS[number] for number in kept]
    assert content(root)["frames"]["index"] == list(range(sum(lengths)))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"from_timestamp": 2.5, "to_timestamp": 3.5}, "LAKE-013"),
        ({"to_timestamp": 2.7}, "LAKE-015"),
        ({"length": 11}, "LAKE-012"),
        ({"file_index": 4}, "LAKE-010"),
    ],
)
def test_a_bad_span(changes: dict[str, Any], code: str, v2: Path, tmp_path: Path) -> None:
    v3 = write_v3(tmp_path / "v3", v2, LENGTHS)
    change_episode_table(v3, 2, **changes)
    done = ingest(v3, tmp_path / "cart")
    assert (done.num_episodes, done.num_quarantined) == (2, 1)
    assert code in [found for found, episode in findings(tmp_path / "cart") if episode == 2]


def test_nothing_sound_is_an_error_and_leaves_nothing(v2: Path, tmp_path: Path) -> None:
    shutil.rmtree(v2 / "data")
    with pytest.raises(UserError) as error:
        ingest(v2, tmp_path / "cart")
    assert error.value.code == "LAKE-001" and "in 3 = ok 0 + quarantined 3" in error.value.done
    assert not (tmp_path / "cart").exists()


def test_another_kind_of_frames_is_refused(v2: Path, tmp_path: Path) -> None:
    root = tmp_path / "cart"
    ingest(v2, root)
    other = write_v2(tmp_path / "other", LENGTHS)
    for number, length in enumerate(LENGTHS):
        change_rows(rows_file(other, number), next__reward=[0.5] * length)
    with pytest.raises(UserError, match="next.reward") as error:
        ingest(other, root)
    assert error.value.code == "LAKE-006" and versions(root) == [1]


def test_what_the_recorder_declares_goes_before_the_recipe(v2: Path, tmp_path: Path) -> None:
    declared = {"embodiment": "cart", "render_every": 4, "colour_order": "bgr"}
    v3 = write_v3(tmp_path / "v3", v2, LENGTHS, declared=declared)
    done = ingest(v3, tmp_path / "cart")
    assert (done.view["meaning"]["render_every"], done.view["meaning"]["colour_order"]) == (4, "bgr")
    assert done.fingerprint != ingest(v2, tmp_path / "cart").fingerprint, "the same pixels with another meaning"
    with pytest.raises(UserError) as error:
        ingest(v3, tmp_path / "cart", replace(SPEC, embodiment="crane"))
    assert error.value.code == "LAKE-005"


def test_dimensions_must_be_the_embodiments(v2: Path, tmp_path: Path) -> None:
    ingest(v2, tmp_path / "fits", dims=(3, 2))
    with pytest.raises(UserError, match="3 state and 2 action") as error:
        ingest(v2, tmp_path / "cart", dims=(44, 44))
    assert error.value.code == "LAKE-005" and not (tmp_path / "cart").exists()


def test_it_can_be_stopped_between_episodes(v2: Path, tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    seen: list[int] = []

    def check() -> None:
        if len(seen) == 2:
            raise Stopped

    with pytest.raises(Stopped):
        ingest(v2, tmp_path / "cart", check=check, on_progress=lambda number, total, figures: seen.append(number))
    assert seen == [1, 2] and not (tmp_path / "cart/manifests").exists()


def test_a_source_that_changes_meanwhile_is_not_committed(v2: Path, tmp_path: Path) -> None:
    calls: list[int] = []

    def unchanged() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise UserError("LAKE-003", "changed")

    with pytest.raises(UserError, match="LAKE-003"):
        ingest(v2, tmp_path / "cart", unchanged=unchanged)
    assert not (tmp_path / "cart/manifests").exists()


def test_a_crash_at_any_step_shows_all_or_nothing(tmp_path: Path) -> None:
    """SIGKILL before and after each write and commit; the same command then ends where no crash would have."""
    short, whole = write_v2(tmp_path / "short", LENGTHS[:2]), write_v2(tmp_path / "whole", LENGTHS)
    ingest(short, tmp_path / "started")
    old = content(tmp_path / "started")
    shutil.copytree(tmp_path / "started", tmp_path / "undisturbed")
    ingest(whole, tmp_path / "undisturbed")
    new = content(tmp_path / "undisturbed")
    points = range(1, 2 * STEPS + 1)
    for point in points:
        shutil.copytree(tmp_path / "started", tmp_path / f"killed{point}")
    command = [sys.executable, "-m", "tests.data_lake.crashing_ingest", str(whole)]
    command += [f"{tmp_path}/killed{point}:{point}" for point in points]
    root = Path(__file__).parents[2]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=True)
    assert ended.stdout.split("\n")[:-1] == [f"killed{point} killed" for point in points], ended.stderr
    for point in points:
        copy = tmp_path / f"killed{point}"
        is_done = point == 2 * STEPS  # killed after the manifest was put
        assert content(copy) == (new if is_done else old), point
        done = ingest(whole, copy)
        assert done.num_new == (0 if is_done else 1)
        assert content(copy) == new and versions(copy) == [1, 2], point


def test_two_at_once_put_each_episode_in_once(v2: Path, tmp_path: Path) -> None:
    """Both read the same base; the one that comes second reads again and finds its episodes there."""
    other = write_v2(tmp_path / "other", (5, 6))
    root, barrier = tmp_path / "cart", threading.Barrier(2)
    done: dict[str, Ingested] = {}

    def work(name: str, source: Path) -> None:
        met: list[bool] = []

        def meet(number: int, total: int, _figures: dict[str, float]) -> None:
            if number == total and not met:
                met.append(True)
                barrier.wait(timeout=60)

        out = tmp_path / f"out-{name}"
        done[name] = ingest_source(source, SPEC, dataset_root=root, out_dir=out, on_progress=meet)

    for pair in ([("a", v2), ("b", v2)], [("c", other), ("d", v2)]):
        threads = [threading.Thread(target=work, args=each) for each in pair]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted((done["a"].num_new, done["b"].num_new)) == [0, 3]
    assert done["a"].view["episodes"] == done["b"].view["episodes"]
    assert (done["c"].num_new, done["d"].num_new) == (2, 0)
    seen = content(root)
    assert seen["frames"]["index"] == list(range(41))
    keys = list(zip(seen["episodes"]["source_episode"], seen["episodes"]["content_hash"], strict=True))
    assert len(keys) == len(set(keys)) == 5


# --- recorded robots ---------------------------------------------------------------------------------------

GR1_DEFECTS = {f"LAKE-{number:03d}" for number in range(41, 53)}


def test_gr1_with_its_real_defects(shared_data: Path, tmp_path: Path) -> None:
    done = ingest(shared_data / "lerobot-v2.0-gr1-picknplace", tmp_path / "gr1", dims=(44, 44))
    assert (done.num_episodes, done.num_quarantined, done.num_frames) == (5, 0, 2096)
    assert {item.severity for item in done.findings} == {"warning"}
    assert {item.code for item in done.findings} == GR1_DEFECTS
    constant = [item.message for item in done.findings if item.code == "LAKE-052"]
    assert any("25 of 44 in action" in text for text in constant)
    assert any("18 of 44 in observation_state" in text for text in constant)
    instructions = [each["instruction"] for each in done.view["episodes"]]
    assert instructions[3] == "pick the salt from the counter and place it in the plate" and len(set(instructions)) == 5
    assert "valid" not in content(tmp_path / "gr1")["tasks"]["task"]


def test_gr1_in_both_versions_is_the_same(shared_data: Path, tmp_path: Path) -> None:
    first = ingest(shared_data / "lerobot-v2.0-gr1-picknplace", tmp_path / "gr1")
    second = ingest(shared_data / "lerobot-v3.0-gr1-repacked", tmp_path / "gr1")
    assert second.num_new == 0
    assert [each["content_hash"] for each in first.view["episodes"]] == [
        each["content_hash"] for each in second.view["episodes"]
    ]
    apart = ingest(shared_data / "lerobot-v3.0-gr1-repacked", tmp_path / "repacked")
    places = [each["views"]["ego_view"]["file_index"] for each in apart.view["episodes"]]
    assert places == [0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("lerobot-v2.1-g1-partial", (4, 96, 1043)),
        ("lerobot-v3.0-pusht-mini", (3, 0, 420)),
        ("lerobot-v3.0-metaworld-by-lerobot", (3, 0, 254)),
    ],
)
def test_other_recordings(name: str, counts: tuple[int, int, int], shared_data: Path, tmp_path: Path) -> None:
    done = ingest(shared_data / name, tmp_path / "other")
    assert (done.num_episodes, done.num_quarantined, done.num_frames) == counts


def test_a_subset_has_its_own_rows(shared_data: Path, tmp_path: Path) -> None:
    """D05: episodes 28-31, whose numbers are no positions."""
    source = tmp_path / "g1"
    source.mkdir()
    for name in ("data", "videos"):
        (source / name).symlink_to(shared_data / "lerobot-v2.1-g1-partial" / name)
    (source / "meta").symlink_to(shared_data / "lerobot-v2.1-g1-partial/meta-trimmed")
    done = ingest(source, tmp_path / "lake")
    lengths = {each["source_episode"]: each["length"] for each in done.view["episodes"]}
    assert lengths == {28: 278, 29: 221, 30: 277, 31: 267}


@pytest.mark.parametrize("name", ["lerobot-v2.1-lfs-pointers-apple-storage", "lerobot-hybrid-malformed-franka-sim"])
def test_recordings_without_a_sound_episode(name: str, shared_data: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        ingest(shared_data / name, tmp_path / "none")
    assert error.value.code == "LAKE-001"
