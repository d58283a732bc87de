"""What commands show of a folder of recordings and of a data set; nothing here starts Prefect."""

import json
from pathlib import Path

import pytest

from data_lake.specs import IngestSpec, ReadSpec
from flows.cli import main
from flows.commands.episodes import gravest_fix
from tests.data_lake.recordings import change_info, write_v2
from tests.data_lake.seen import ingest
from tests.flows.test_commands import answer

Captured = pytest.CaptureFixture[str]


def test_doctor_of_a_sound_and_of_a_torn_folder(tmp_path: Path, capsys: Captured) -> None:
    source = write_v2(tmp_path / "source")
    assert main(["doctor", str(source), "--json", "--lake", str(tmp_path / "lake")]) == 0
    sound = json.loads(capsys.readouterr().out)
    assert sound["episodes"] == {"in": 3, "ok": 3, "quarantined": 0}
    torn = sorted(source.rglob("*.parquet"))[0]
    torn.write_bytes(torn.read_bytes()[:100])
    assert main(["doctor", str(source), "--json", "--lake", str(tmp_path / "lake")]) == 1
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert found["episodes"] == {"in": 3, "ok": 2, "quarantined": 1}
    assert found["findings"][0]["code"] == "LAKE-007"
    assert "LAKE-007" in shown.err and "next:" in shown.err


def test_path_and_publish_of_a_version(tmp_path: Path, capsys: Captured) -> None:
    ingest(write_v2(tmp_path / "source"), tmp_path / "lake/datasets/cart")
    path = str(tmp_path / "lake/datasets/cart/published/000001")
    assert answer(tmp_path, capsys, "path", "cart") == {"dataset": "cart", "version": 1, "path": path}
    assert main(["path", "cart@1", "--lake", str(tmp_path / "lake")]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    for form in ("v3.0", "v2.1"):
        found = answer(tmp_path, capsys, "publish", "cart", str(tmp_path / form), "--as", form)
        result = {"dataset": "cart", "version": 1, "form": form, "path": str(tmp_path / form), "findings": []}
        assert found == {"command": "publish", "ok": True, "result": result}
        assert answer(tmp_path, capsys, "doctor", str(tmp_path / form))["version"] == form
    refused = answer(tmp_path, capsys, "publish", "cart", str(tmp_path / "v3.0"), "--as", "v3.0", status=1)
    assert refused["error"]["code"] == "LAKE-133"
    assert answer(tmp_path, capsys, "publish", "cart", "x", "--as", "v4", status=2)["error"]["code"] == "NAME-001"


def test_what_readers_should_know_is_beside_the_path(tmp_path: Path, capsys: Captured) -> None:
    """Standard output is the path alone: `$(./vlaloop path …)` works whatever there is to say."""
    spec = IngestSpec(dataset="cart", embodiment="cart", read=ReadSpec(colour_order="bgr"))
    ingest(write_v2(tmp_path / "source"), tmp_path / "lake/datasets/cart", spec)
    assert main(["path", "cart", "--lake", str(tmp_path / "lake")]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"{tmp_path / 'lake/datasets/cart/published/000001'}\n"
    assert "LAKE-131" in shown.err


def test_videos_that_moved_are_found_again(tmp_path: Path, capsys: Captured) -> None:
    """A finished ingest is not repeated, unless there is a reason; then files are looked for where they are now."""
    words = ("--dataset", "cart", "--embodiment", "tests.tasks.test_ingest:CART", "--reference")
    answer(tmp_path, capsys, "ingest", str(write_v2(tmp_path / "source")), *words)
    moved = str((tmp_path / "source").rename(tmp_path / "moved"))
    assert answer(tmp_path, capsys, "doctor", "cart", status=1)["findings"][0]["code"] == "LAKE-197"
    assert answer(tmp_path, capsys, "ingest", moved, *words)["result"]["cached"]
    again = answer(tmp_path, capsys, "ingest", moved, *words, "--why", "videos moved")["result"]
    assert (again["cached"], again["version"]) == (False, 2)
    assert answer(tmp_path, capsys, "doctor", "cart")["findings"] == []


def test_doctor_repairs_what_the_rows_prove(tmp_path: Path, capsys: Captured) -> None:
    source = write_v2(tmp_path / "source")
    change_info(source, total_videos=7, total_frames=1)
    arguments = ["doctor", str(source), "--repair", "--deep", "--json", "--lake", str(tmp_path / "lake")]
    assert main(arguments) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert {item["what"]: (item["was"], item["now"]) for item in found["repaired"]} == {
        "total_videos": (7, 3),
        "total_frames": (1, 30),
    }
    assert not {"LAKE-041", "LAKE-054"} & {item["code"] for item in found["findings"]}
    assert "repaired meta/info.json total_videos: 7 -> 3" in shown.err and "× push the cube" in shown.err
    assert main(arguments) == 0 and json.loads(capsys.readouterr().out)["repaired"] == []
    assert main(["doctor", str(tmp_path), "--repair"]) == 1 and "LAKE-154" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("severities", "expected"),
    [([], ""), (["note"], ""), (["note", "warning", "warning"], "mend 1"), (["warning", "error", "error"], "mend 1")],
)
def test_the_next_step_is_that_of_the_gravest_finding(severities: list[str], expected: str) -> None:
    found = [{"severity": severity, "fix": f"mend {place}"} for place, severity in enumerate(severities)]
    assert gravest_fix(found) == expected


@pytest.mark.parametrize("deep", [False, True])
def test_doctor_says_whether_frames_are_decoded(deep: bool, tmp_path: Path, capsys: Captured) -> None:
    source = write_v2(tmp_path / "source")
    assert main(["doctor", str(source), *(["--deep"] if deep else [])]) == 0
    shown = capsys.readouterr().out
    assert ("every video frame" in shown, "decoded only with --deep" in shown) == (deep, not deep)
