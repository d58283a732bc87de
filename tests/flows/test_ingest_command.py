"""What `ingest` says came in, and what `show` says was left out."""

from pathlib import Path

import pytest

from flows.cli import main
from tests.data_lake.recordings import change_info, write_v2
from tests.flows.test_commands import Captured, answer


def test_ingest_says_what_is_new_and_show_what_was_left_out(tmp_path: Path, capsys: Captured) -> None:
    source = write_v2(tmp_path / "source")
    (source / "data/chunk-000/episode_000001.parquet").write_bytes(b"PAR1")
    words = ("ingest", str(source), "--embodiment", "tests.tasks.test_ingest:CART", "--dataset")
    places = ("--lake", str(tmp_path / "lake"), "--home", str(tmp_path / "home"))
    first = answer(tmp_path, capsys, *words, "cart")["result"]
    again = answer(tmp_path, capsys, *words, "cart")["result"]
    assert (first["num_new"], again["num_new"], again["cached"]) == (2, 0, True)
    assert main([*words, "wagon", *places]) == 0
    assert "wagon@1: 2 ok · 1 quarantined · 18 frames · 2 new" in capsys.readouterr().out
    change_info(source, robot_type="another")
    assert main([*words, "cart", *places]) == 0
    assert "cart@1: 2 ok · 1 quarantined · 18 frames · 0 new, 2 there already" in capsys.readouterr().out
    slot = first["uri"].partition("/attempts")[0]
    (left_out,) = answer(tmp_path, capsys, "show", slot)["quarantine"]
    assert left_out["episode"] == 1
    assert main(["show", slot, *places]) == 0
    shown = capsys.readouterr().out
    (found,) = (each for each in left_out["findings"] if each["severity"] == "error")
    for told in (str(source), f"episode 1 · {left_out['file']}", found["code"], found["message"], found["fix"]):
        assert told in shown
    assert main([*words, "../x", *places]) != 0 and "LAKE-034" in capsys.readouterr().err


@pytest.mark.parametrize("is_cached", [False, True])
def test_strict_says_that_it_failed_and_what_is_in_the_lake(is_cached: bool, tmp_path: Path, capsys: Captured) -> None:
    source = write_v2(tmp_path / "source")
    (source / "data/chunk-000/episode_000001.parquet").write_bytes(b"PAR1")
    words = ("ingest", str(source), "--embodiment", "tests.tasks.test_ingest:CART", "--dataset", "cart")
    places = ("--lake", str(tmp_path / "lake"), "--home", str(tmp_path / "home"))
    if is_cached:
        answer(tmp_path, capsys, *words)
    found = answer(tmp_path, capsys, *words, "--strict", status=1)
    assert (found["ok"], found["error"]["code"], found["result"]["num_episodes"]) == (False, "INGEST-001", 2)
    assert main([*words, "--strict", *places]) == 1
    told = capsys.readouterr().err
    assert "INGEST-001: failed because of --strict: 1 episode in quarantine" in told
    assert "2 sound episodes in the lake as cart@1" in told and "./vlaloop show ingest/" in told


@pytest.mark.parametrize("broken", [(), (1,), (0, 1)])
def test_show_of_an_ingest_names_its_source_and_tells_each_kind_once(
    broken: tuple[int, ...], tmp_path: Path, capsys: Captured
) -> None:
    source = write_v2(tmp_path / "source")
    for number in broken:
        (source / f"data/chunk-000/episode_{number:06d}.parquet").write_bytes(b"PAR1")
    words = ("ingest", str(source), "--embodiment", "tests.tasks.test_ingest:CART", "--dataset", "cart")
    slot = answer(tmp_path, capsys, *words)["result"]["uri"].partition("/attempts")[0]
    assert main(["show", slot, "--lake", str(tmp_path / "lake"), "--home", str(tmp_path / "home")]) == 0
    shown = capsys.readouterr().out
    made_of = shown.partition("made of\n")[2].partition("settings")[0]
    assert str(source) in made_of and "ingest/" not in made_of
    out = answer(tmp_path, capsys, "show", slot)["quarantine"]
    assert ("in quarantine" in shown, len(out)) == (bool(broken), len(broken))
    for code in {found["code"] for each in out for found in each["findings"]}:
        assert shown.count(code) == 1
    assert ("episodes 0-1" in shown) is (len(broken) > 1)
    assert main(["show", "cart", "--lake", str(tmp_path / "lake")]) == 0
    shown = capsys.readouterr().out
    (came,) = (line for line in shown.splitlines() if "ingested" in line)
    assert str(source) in came and (f"{len(broken)} quarantined: ./vlaloop show ingest/" in came) is bool(broken)
