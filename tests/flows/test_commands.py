"""What commands show of a finished loop and of a folder of recordings; nothing here starts Prefect."""

import dataclasses
import json
import shutil
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from data_lake.store import begin
from flows.cli import main
from flows.commands.run import Order, _end, _parsed, _revoke
from flows.places import Places
from flows.plan import make_plan
from flows.recipe import load
from flows.screen import Screen
from tasks.launchers import Job
from tasks.train import Submitted
from tests.data_lake.recordings import write_v2
from tests.data_lake.seen import ingest
from tests.tasks import fabricated
from tests.tasks.test_launchers import LAUNCHER as SHELL

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake in which a made-up `tiny` was built."""
    root = tmp_path_factory.mktemp("finished")
    fabricated.run(root / "lake", root / "home", "tiny")
    return root


def answer(finished: Path, capsys: Captured, *arguments: str, status: int = 0) -> Any:
    places = ["--lake", str(finished / "lake"), "--home", str(finished / "home"), "--json"]
    assert main([*arguments, *places]) == status
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_run_of_a_finished_loop_answers_from_records(finished: Path, capsys: Captured) -> None:
    found = answer(finished, capsys, "run", "tiny")
    assert set(found) == {"recipe", "lake", "seconds", "cpu_seconds", "stages", "result"}
    assert [stage["state"] for stage in found["stages"]] == ["cached"] * 8
    assert found["seconds"] == found["cpu_seconds"] == 0
    assert set(found["stages"][0]) == {"name", "slot", "state", "why", "seconds", "ref"}
    first = found["result"]["success"]["button-press-topdown-v3"]
    assert (first["k"], first["n"]) == (27, 30) and 0 < first["low"] < 0.9 < first["high"] < 1
    assert set(found["result"]["safety"]) == {"collisions", "limit_hits", "non_finite"}
    assert found["result"]["alias"] == "champion"
    assert found["result"]["model_version"]["name"] == "tiny"


def test_run_for_people_ends_with_what_to_do_next(finished: Path, capsys: Captured) -> None:
    places = ["--lake", str(finished / "lake"), "--home", str(finished / "home")]
    assert main(["run", "tiny", *places]) == 0
    shown = capsys.readouterr().out
    assert "27/30" in shown and "nothing to build" in shown
    assert "./vlaloop report tiny" in shown
    assert f'mlflow.set_tracking_uri("sqlite:///{finished / "home" / "mlflow.db"}")' in shown
    assert 'mlflow.pyfunc.load_model("models:/tiny/1")' in shown


def test_run_and_plan_until_a_stage_tell_of_no_later_one(finished: Path, capsys: Captured) -> None:
    for command in ("run", "plan"):
        found = answer(finished, capsys, command, "tiny", "--until", "pack")
        assert [stage["name"] for stage in found["stages"]] == ["collect", "ingest", "preprocess", "pack"]
        assert found["result"]["model_version"] is None
    places = ["--lake", str(finished / "lake"), "--home", str(finished / "home")]
    assert main(["run", "tiny", "--until", "pack", *places]) == 0
    shown = capsys.readouterr().out
    assert "built until pack, as asked" in shown and "go on     ./vlaloop run tiny\n" in shown and "report" not in shown
    assert main(["plan", "tiny", "--until", "packs", *places]) == 2
    assert "CLI-003: no stage 'packs'" in capsys.readouterr().err


def test_plan_says_done_and_why_not(finished: Path, capsys: Captured) -> None:
    assert {stage["state"] for stage in answer(finished, capsys, "plan", "tiny")["stages"]} == {"done"}
    changed = answer(finished, capsys, "plan", "tiny", "--set", "train.num_steps=5")
    states = {stage["name"]: stage["state"] for stage in changed["stages"]}
    assert [name for name, state in states.items() if state == "build"] == ["train", "export", "evaluate", "register"]
    why = {stage["name"]: stage["why"] for stage in changed["stages"]}
    assert why["train"][0].startswith("train.num_steps: ") and why["train"][0].endswith(" -> 5")
    assert why["export"] == ["upstream"]


def test_plan_predicts_the_memory_of_a_training_it_would_start(finished: Path, capsys: Captured) -> None:
    assert answer(finished, capsys, "plan", "tiny")["memory"] is None
    memory = answer(finished, capsys, "plan", "tiny", "--set", "train.seed=5")["memory"]
    assert memory["fits"] and memory["weights"] < memory["optimizer"] < memory["activations"] < memory["available"]
    larger = answer(finished, capsys, "plan", "tiny", "--set", "policy.prefix_width=65536")["memory"]
    assert not larger["fits"]


def test_ls_and_show_lead_back_to_the_episodes(finished: Path, capsys: Captured) -> None:
    refs = answer(finished, capsys, "ls")
    assert len(refs) == 8 and refs[0]["stage"] == "collect"
    assert [ref["stage"] for ref in answer(finished, capsys, "ls", "train")] == ["train"]
    assert main(["ls", "trian", "--lake", str(finished / "lake")]) == 2
    assert "no stage 'trian'" in capsys.readouterr().err
    assert main(["ls", "register", "--lake", str(finished / "lake")]) == 0
    assert "now champion" in capsys.readouterr().out
    by_slot = answer(finished, capsys, "show", refs[-1]["slot"])
    by_version = answer(finished, capsys, "show", "tiny@1")
    assert by_slot == by_version
    assert by_slot["ref"]["name"] == "tiny" and not by_slot["damaged"]
    assert [each["stage"] for each in by_slot["lineage"]][:2] == ["collect", "ingest"]


def test_show_tells_damage(finished: Path, capsys: Captured) -> None:
    pack = next(ref for ref in answer(finished, capsys, "ls") if ref["stage"] == "pack")
    record = answer(finished, capsys, "show", pack["slot"])["record"]
    name = next(iter(record["files"]))
    path = finished / "lake" / pack["slot"] / name
    before = path.read_bytes()
    path.write_bytes(before + b"!")
    assert answer(finished, capsys, "show", pack["slot"], status=1)["damaged"]
    path.write_bytes(before)


def test_rebuild_revokes_with_a_reason(finished: Path, tmp_path: Path, capsys: Captured) -> None:
    """Seen in the plan; the run itself would start Prefect."""
    shutil.copytree(finished / "lake", tmp_path / "lake")
    where = Places(lake=tmp_path / "lake", home=tmp_path / "home")
    order = Order(recipe="tiny", changes=(), profile="laptop", where=where)
    _revoke(make_plan(order.load(), where.lake, None), "export", "wrong scale", Screen(quiet=True))
    states = {each.stage.name: each for each in make_plan(order.load(), where.lake, None)}
    assert [name for name, each in states.items() if not each.record] == ["export", "evaluate", "register"]
    assert "revoked: wrong scale" in states["export"].why


def test_report_is_one_file(finished: Path, tmp_path: Path, capsys: Captured) -> None:
    found = answer(finished, capsys, "report", "tiny", "--out", str(tmp_path / "page.html"))
    assert found == {"command": "report", "ok": True, "result": {"path": str(tmp_path / "page.html")}}
    assert "<html" in (tmp_path / "page.html").read_text()


def test_a_report_of_a_change_does_not_overwrite_that_of_the_recipe(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    answer(finished, capsys, "report", "tiny")
    answer(finished, capsys, "report", "tiny", "--set", "train.num_steps=7")
    assert len(list(tmp_path.glob("report-tiny*.html"))) == 2


def test_builds_and_trainings_that_go_on_are_told(finished: Path, tmp_path: Path, capsys: Captured) -> None:
    """By `plan` and `ls` from the lease of a living builder; by `down` from the job itself."""
    shutil.copytree(finished / "lake", tmp_path / "lake")
    where = Places(lake=tmp_path / "lake", home=tmp_path / "home")
    order = Order(recipe="tiny", changes=("train.seed=9",), profile="laptop", where=where)
    slot = next(each.slot for each in make_plan(order.load(), where.lake, None) if each.stage.name == "train")
    assert slot is not None
    attempt = begin(slot, run_id="run-9", lease_s=5.0, on_wait=lambda held: None)
    assert attempt is not None
    places = ["--lake", str(where.lake), "--home", str(where.home)]
    assert main(["ls", *places]) == 0
    assert f"train/{slot.fingerprint[:8]} is being built by run run-9" in capsys.readouterr().out
    assert main(["plan", "tiny", "--set", "train.seed=9", "--json", *places]) == 0
    shown = capsys.readouterr()
    told = {stage["name"]: stage["builder"] for stage in json.loads(shown.out)["stages"]}
    assert told["train"] == "run-9" and told["pack"] is None and "run run-9 is at it" in shown.err
    job = Job(job_id=uuid.uuid4().hex, module="", arguments=("sleep 60",), directory=attempt.path / "job")
    handle = SHELL.submit(job) | {"launcher": "tests.tasks.test_launchers:LAUNCHER"}
    Submitted(handle=handle, output="attempts/1").keep(slot.path)
    try:
        assert main(["down", *places]) == 0
        assert f"goes on as job {job.job_id[:8]}" in capsys.readouterr().out
    finally:
        SHELL.cancel(handle)
        attempt.release()


def test_gc_says_and_then_does(finished: Path, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "lake" / "train" / "abc" / "leases").mkdir(parents=True)
    (tmp_path / "lake" / "train" / "abc" / "half").write_text("x")
    arguments = ["gc", "--grace-s", "0", "--json", "--lake", str(tmp_path / "lake")]
    assert main([*arguments, "--dry-run"]) == 0
    assert len(json.loads(capsys.readouterr().out)["result"]["removed"]) == 1
    assert (tmp_path / "lake" / "train" / "abc").exists()
    assert main(arguments) == 0
    assert not (tmp_path / "lake" / "train" / "abc").exists()


def test_gc_tells_a_line_for_each_data_set(tmp_path: Path, capsys: Captured) -> None:
    """What Lance left there by its own names is for machines."""
    for root in (tmp_path / "lake/datasets/cart", tmp_path / "lake/datasets/arm"):
        ingest(write_v2(tmp_path / root.name), root)
        for number in range(9):
            (root / f"frames.lance/data/{number:032x}.lance").write_bytes(b"left by a crash")
    arguments = ["gc", "--grace-s", "0", "--dry-run", "--lake", str(tmp_path / "lake")]
    assert main(arguments) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert main([*arguments, "--json"]) == 0
    removed = [Path(each["path"]) for each in json.loads(capsys.readouterr().out)["result"]["removed"]]
    inside = Counter(path.relative_to(tmp_path / "lake").parts[1] for path in removed)
    assert inside["cart"] >= 9 and last.startswith(f"{len(removed)} to remove")
    assert len(lines) == len(inside) and f"datasets/cart · {inside['cart']} files" in "\n".join(lines)


def test_parameters_of_a_deployment_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker stands in another folder: paths are absolute; everything else is as it was typed."""
    monkeypatch.chdir(tmp_path)
    where = Places(lake=tmp_path / "lake", home=tmp_path / "home")
    changes = (
        "train.num_steps=5",
        "collect=null",
        "ingest.source=here",
        'gate={"min_score": 0, "min_task_score": 0, "margin": 1}',
    )
    order = Order(recipe="tiny", changes=changes, profile="mine.yaml", where=where)
    assert order.parameters() == {
        "recipe": "tiny",
        "settings": [*changes, f'ingest.source="{tmp_path / "here"}"'],
        "profile": str(tmp_path / "mine.yaml"),
        "lake": str(tmp_path / "lake"),
        "home": str(tmp_path / "home"),
    }
    assert (
        dataclasses.replace(load("tiny", order.parameters()["settings"]).ingest, source="here") == order.load().ingest
    )
    assert Order(recipe="tiny", changes=(), profile="laptop", where=where).parameters()["settings"] == []


def test_a_run_that_ends_without_its_result_is_no_success(finished: Path, capsys: Captured) -> None:
    where = Places(lake=finished / "lake", home=finished / "home")
    order = Order(recipe="tiny", changes=("train.seed=5",), profile="laptop", where=where)
    planned = make_plan(order.load(), where.lake, None)
    assert _end(order.outcome(planned), None, Screen(as_json=True)) == 1
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "RUN-002"


def test_an_error_of_another_process_keeps_its_parts() -> None:
    told = "LAKE-007: torn file\n  a.parquet · episode 3\n  done: quarantine\n  next: copy it again"
    error = _parsed(told, "retry")
    assert str(error) == told
    assert _parsed("LAKE-001: nothing", "retry").next_step == "retry"
