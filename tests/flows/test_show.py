"""`show` of a data set, of one of its episodes, as a page; and which thing a name stands for."""

import shutil
from pathlib import Path

import pytest

from data_lake.overview import ColumnLine
from flows.cli import main
from flows.commands.dataset import meant, still
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import ingest
from tests.flows.test_commands import Captured, answer
from tests.tasks import fabricated


def test_show_of_a_data_set(tmp_path: Path, capsys: Captured) -> None:
    ingest(write_v2(tmp_path / "source"), tmp_path / "lake/datasets/cart")
    found = answer(tmp_path, capsys, "show", "cart")
    assert found == answer(tmp_path, capsys, "show", "datasets/cart@1") and found["ok"]
    told = found["result"]
    assert (told["dataset"], told["num_episodes"], told["lengths"]) == ("cart", 3, [8, 10, 12])
    assert main(["show", "cart", "--lake", str(tmp_path / "lake")]) == 0
    shown = capsys.readouterr().out
    for text in ("cart@1 · 3 episodes · 30 frames", "push the cube", "32×32", "h264", "the first", "1 of 3: z"):
        assert text in shown, text
    (episode,) = answer(tmp_path, capsys, "show", "cart", "--episode", "1")["result"]["episodes"]
    assert (episode["source"], episode["from_index"], episode["to_index"]) == ("source", 8, 20)
    by_source = answer(tmp_path, capsys, "show", "cart", "--source-episode", "1")["result"]["episodes"]
    assert by_source == [episode]
    assert main(["show", "cart", "--episode", "1", "--lake", str(tmp_path / "lake")]) == 0
    assert "8 … 19 of frames.lance (12, 1.2 s)" in capsys.readouterr().out
    page = tmp_path / "cart.html"
    written = answer(tmp_path, capsys, "show", "cart", "--html", str(page))["result"]
    assert written == {"path": str(page), "num_bytes": page.stat().st_size, "num_shown": 3}
    refused = answer(tmp_path, capsys, "show", "cart", "--episode", "3", status=1)
    assert refused["error"]["code"] == "LAKE-190"
    assert answer(tmp_path, capsys, "show", "trolley", "--episode", "0", status=1)["error"]["code"] == "LAKE-002"
    assert answer(tmp_path, capsys, "show", "trolley", status=2)["error"]["code"] == "CLI-004"


def test_a_name_of_several_things_is_said(tmp_path: Path, capsys: Captured) -> None:
    """`tiny@1` stays the registered version; the whole name of a data set comes before a fingerprint's beginning."""
    fabricated.run(tmp_path / "lake", tmp_path / "home", "tiny")
    shutil.rmtree(tmp_path / "lake/datasets/tiny")  # which has no tables
    pack = next(ref for ref in answer(tmp_path, capsys, "ls") if ref["stage"] == "pack")
    short = pack["slot"].partition("/")[2][:4]
    for name in ("tiny", short):
        ingest(write_v2(tmp_path / f"source-{name}"), tmp_path / "lake/datasets" / name)
    places = ["--lake", str(tmp_path / "lake"), "--home", str(tmp_path / "home")]
    assert main(["show", "tiny@1", *places]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("register/") and "./vlaloop show datasets/tiny@1" in shown.err
    assert main(["show", "datasets/tiny@1", *places]) == 0
    assert capsys.readouterr().out.startswith("tiny@1 · 3 episodes")
    assert main(["show", short, *places]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f"{short}@1 · 3 episodes") and f"./vlaloop show pack/{short}" in shown.err


@pytest.mark.parametrize(
    ("constant", "told"), [((), ""), ((1,), "1 of 6: gripper"), ((0, 2, 3, 4, 5), "5 of 6: 0, 2-5")]
)
def test_dimensions_that_never_change(constant: tuple[int, ...], told: str) -> None:
    names = ("x", "gripper", "", "", "", "")
    assert still(ColumnLine(column="action", dtype="float32", names=names, constant=constant)) == told


def test_what_nobody_said_is_said_to_be_so() -> None:
    usual = "colours rgb · pictures upright · actions not said · grippers: as recorded"
    said = {"colour_order": "rgb", "image_orientation": "upright", "action_mode": None, "render_every": 1}
    assert meant(said) == usual
    assert "a picture every 4 rows · grippers: 1 is open" in meant(said | {"render_every": 4, "grippers": "1 is open"})
