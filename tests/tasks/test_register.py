"""The register stage against a real MLflow database: published once, verified, moved, undone."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest

from data_lake.refs import EvalReport, ExportRef, ModelVersionRef, from_json
from data_lake.store import Attempt, begin, slot_of
from errors import Transient, UserError
from flows import recipe as recipes
from tasks.promotion import Move, Standing, Version, move, rollback, standing
from tasks.register import register
from tasks.registry import SLOT_TAG, Registry, connect, tracking_uri
from tasks.runtime import Report, Runtime, Summary
from tasks.specs import RegisterStage
from tests.tasks import fabricated


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    runtime: Runtime
    export: ExportRef
    report: EvalReport
    registry: Registry


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """One lake with an evaluated export, one MLflow database (its first use takes seconds)."""
    root = tmp_path_factory.mktemp("registry")
    runtime, _ = fabricated.run(root / "lake", root / "home")

    def ref(stage: str) -> Any:
        (record,) = runtime.lake.glob(f"{stage}/*/record.json")
        return from_json(json.loads(record.read_text())["ref"])

    registry = connect(runtime.lake, runtime.home)
    return World(runtime=runtime, export=ref("export"), report=ref("evaluate"), registry=registry)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A registered model of this test's own."""
    return request.node.originalname


def attempt(world: World, spec: RegisterStage, turn: int) -> Attempt:
    slot = slot_of(world.runtime.lake, "register", turn, spec, (world.export, world.report))
    begun = begin(slot, run_id="r", lease_s=60, on_wait=lambda _held: None)
    assert begun is not None
    return begun


def register_once(
    world: World, name: str, score: float = 0.93, *, turn: int = 1, simulator: str | None = None, **gate: float | str
) -> ModelVersionRef:
    """Run the stage; another `turn` is another slot."""
    spec = RegisterStage(name=name, gate=replace(recipes.load("tiny").gate, **gate))
    report = replace(world.report, score=score, simulator=simulator or world.report.simulator)
    out = attempt(world, spec, turn)
    try:
        return register(spec, world.export, report, out=out, runtime=world.runtime)
    finally:
        out.release()


def present_champion(world: World, name: str) -> Version:
    found = world.registry.champion(name)
    assert found is not None
    return found


def aliases(world: World, name: str) -> dict[str, int]:
    return {k: int(v) for k, v in world.registry.client.get_registered_model(name).aliases.items()}


def uploads(world: World, fingerprint: str) -> list[Any]:
    query = f"tags.`vlaloop.fingerprint` = '{fingerprint}'"
    return list(world.registry.client.search_logged_models([world.registry.experiment_id], query))


def promotion_of(version: Version, found: Standing) -> Move:
    before = found.champions[-1] if found.champions else None
    number, fingerprint = version.number, version.fingerprint
    return Move(action="champion", version=number, fingerprint=fingerprint, before=before, who="w", why="y", at="t")


def test_the_first_version_becomes_champion_and_says_why(world: World, name: str) -> None:
    lines: list[str] = []

    def listen(report: Report) -> None:
        if isinstance(report, Summary):
            lines.append(report.line)

    told = replace(world.runtime, sink=listen)
    ref = register_once(replace(world, runtime=told), name)
    assert (ref.version, ref.alias, ref.accepted) == (1, "champion", True)
    assert aliases(world, name) == {"champion": 1}
    assert lines == [f"{name} v1 → champion  (first version, all gates passed)"]
    (entry,) = world.registry.audit(name).read()
    assert (entry.action, entry.before, entry.evaluation) == ("champion", None, world.report.fingerprint)
    assert all(passed for *_, passed in entry.checks)


def test_a_repeat_makes_nothing_twice(world: World, name: str) -> None:
    first, again = register_once(world, name), register_once(world, name)
    assert first.version == again.version == 1
    assert (first.alias, first.decision) == (again.alias, again.decision)
    assert len(world.registry.audit(name).read()) == 1


def test_promote_twice_and_go_back(world: World, name: str) -> None:
    register_once(world, name, turn=1)
    artifact = present_champion(world, name).artifact
    register_once(world, name, turn=2)
    assert aliases(world, name) == {"champion": 2, "previous": 1}
    rollback(world.registry, name, who="ann", why="drops cups", at="2026-12-02")
    assert aliases(world, name) == {"champion": 1}
    assert present_champion(world, name).artifact == artifact
    moves = world.registry.audit(name).read()
    assert [(each.action, each.version, each.before) for each in moves] == [
        ("champion", 1, None), ("champion", 2, 1), ("rollback", 1, 2)
    ]  # fmt: skip
    assert (moves[2].who, moves[2].why) == ("ann", "drops cups")
    with pytest.raises(UserError, match="REG-002"):
        rollback(world.registry, name, who="ann", why="again", at="2026-12-02")


def test_a_worse_one_is_challenger_and_a_bad_one_is_nothing(world: World, name: str) -> None:
    register_once(world, name, 0.93, turn=1)
    worse = register_once(world, name, 0.8, turn=2)
    assert (worse.alias, worse.accepted) == ("challenger", False)
    bad = register_once(world, name, 0.1, turn=3)
    assert (bad.version, bad.alias, bad.accepted) == (3, None, False)
    assert bad.decision.startswith("rejected: score 0.1")
    assert aliases(world, name) == {"champion": 1, "challenger": 2}


def test_another_simulator_is_not_compared(world: World, name: str) -> None:
    register_once(world, name, 0.8, turn=1)
    ref = register_once(world, name, 1.0, turn=2, simulator="another")
    assert ref.alias == "challenger"
    assert "not comparable" in ref.decision


def test_the_cap_of_a_recipe_is_accepted(world: World, name: str) -> None:
    ref = register_once(world, name, max_alias="challenger")
    assert (ref.alias, ref.accepted) == ("challenger", True)


def test_a_kill_after_the_upload_leaves_one_model(world: World, name: str) -> None:
    spec = RegisterStage(name=name, gate=recipes.load("tiny").gate)
    out = attempt(world, spec, 1)

    def killed() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.registry.publish(
            name, out.fingerprint, world.runtime.path(world.export.uri), run_id="", tags={}, check=killed
        )
    out.release()
    assert world.registry.versions(name) == []
    (left,) = uploads(world, out.fingerprint)
    register_once(world, name)
    (kept,) = uploads(world, out.fingerprint)
    assert left.model_id != kept.model_id
    assert not Path(urlparse(left.artifact_location).path).exists()
    assert len(world.registry.versions(name)) == 1


def test_a_kill_between_the_log_and_the_alias_is_mended_by_who_looks(world: World, name: str) -> None:
    register_once(world, name, turn=1)
    register_once(world, name, turn=2)
    world.registry.client.set_registered_model_alias(name, "champion", "1")
    world.registry.client.delete_registered_model_alias(name, "previous")
    assert present_champion(world, name).number == 2
    assert aliases(world, name) == {"champion": 2, "previous": 1}


def test_a_file_that_came_back_different_makes_no_version(world: World, name: str) -> None:
    class Lossy(type(world.registry.client)):
        """Loses one of the files on the way."""

        def log_model_artifacts(self, model_id: str, local_dir: str, artifact_path: str | None = None) -> None:
            part = Path(local_dir) / "model.safetensors"
            whole = part.read_bytes()
            part.write_bytes(whole[:-1])
            super().log_model_artifacts(model_id, local_dir, artifact_path)
            part.write_bytes(whole)

    client = Lossy(world.registry.client.tracking_uri, world.registry.client.tracking_uri)
    with pytest.raises(Transient, match="not those that were sent"):
        replace(world.registry, client=client).publish(
            name, "f" * 16, world.runtime.path(world.export.uri), run_id="", tags={}, check=lambda: None
        )
    assert world.registry.versions(name) == []


def test_nothing_goes_back_to_a_version_whose_files_are_gone(world: World, name: str) -> None:
    register_once(world, name, turn=1)
    register_once(world, name, turn=2)
    first = world.registry.versions(name)[0]
    shutil.rmtree(Path(urlparse(first.location).path))
    with pytest.raises(Transient):
        rollback(world.registry, name, who="ann", why="", at="")
    assert aliases(world, name)["champion"] == 2


def test_runs_carry_settings_data_and_videos(world: World, name: str) -> None:
    register_once(world, name)
    client = world.registry.client
    query = f"tags.`{SLOT_TAG}` = 'evaluate/{world.report.fingerprint}'"
    (run,) = client.search_runs([world.registry.experiment_id], query)
    assert run.data.metrics["score"] == 0.93
    assert run.data.metrics["success/drawer-open-v3"] == 1.0
    assert len(run.data.params["recipe_sha256"]) == 64
    assert run.inputs is not None
    (given,) = run.inputs.dataset_inputs
    assert (given.dataset.name, json.loads(given.dataset.source)["version"]) == ("tiny", 1)
    assert len(client.list_artifacts(run.info.run_id, "videos")) == 3
    page = Path(client.download_artifacts(run.info.run_id, "report.html")).read_text()
    assert f"{name} v1 → champion" in page
    settings = json.loads(Path(client.download_artifacts(run.info.run_id, "recipe.json")).read_text())
    assert settings["train"]["num_steps"] == recipes.load("tiny").train.num_steps
    trained = client.get_run(client.get_model_version(name, "1").run_id or "")
    assert trained.data.tags[SLOT_TAG].startswith("train/")
    assert world.registry.versions(name)[0].tags["dataset"] == "tiny@1"


def test_a_stranger_loads_the_champion_and_it_acts(world: World, name: str, tmp_path: Path) -> None:
    """Another process, in an empty folder, without the project on its path."""
    register_once(world, name)
    code = f"""
import mlflow, numpy as np
model = mlflow.pyfunc.load_model("models:/{name}@champion")
image = np.random.default_rng(0).integers(0, 256, (2, 64, 64, 3)).astype(np.uint8)
seen = {{"view.top": image, "view.corner": image, "proprio": np.zeros((2, 4), np.float32),
         "instruction": np.array(["open the drawer", "press the button from the top"])}}
both = model.predict(seen)
alone = model.predict({{key: column[1:] for key, column in seen.items()}})
other = model.predict(seen, params={{"seed": 1}})
print(both.shape, both.dtype, np.isfinite(both).all(), np.array_equal(both[1:], alone), np.array_equal(both, other))
"""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment = kept | {"MLFLOW_TRACKING_URI": tracking_uri(world.runtime.home), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.stdout.split("\n")[-2:] == ["(2, 4, 4) float32 True True False", ""], ran.stderr


def test_many_at_once_leave_one_champion(world: World, name: str) -> None:
    for turn in (1, 2, 3):
        register_once(world, name, turn=turn)
    versions = world.registry.versions(name)

    def act(number: int) -> None:
        if number in (2, 5):
            rollback(world.registry, name, who=str(number), why="", at="")
        else:
            move(world.registry, name, lambda found: promotion_of(versions[number % 3], found))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(act, range(8)))
    moves = world.registry.audit(name).read()
    assert len(moves) == 3 + 8
    assert aliases(world, name) == standing(world.registry, name, moves).aliases


def test_no_secret_of_the_environment_is_written_anywhere(
    world: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "canary-8f3a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-8f3a")
    register_once(world, name)
    root = world.runtime.lake.parent
    assert [path for path in root.rglob("*") if path.is_file() and b"canary-8f3a" in path.read_bytes()] == []


def test_a_longer_or_changed_parameter_loses_nothing(world: World) -> None:
    run_id = world.registry.run_of("train/params", "t")
    world.registry.log_params(run_id, {"long": "x" * 10_000, "lr": 0.1})
    world.registry.log_params(run_id, {"lr": 0.2})
    data = world.registry.client.get_run(run_id).data
    assert (data.params["lr"], data.tags["vlaloop.lr"], len(data.params["long"])) == ("0.1", "0.2", 500)
    assert world.registry.run_of("train/params", "t") == run_id


@pytest.mark.parametrize("bad", ["", "../up", "a/b", "a' or 'x", ".hidden", "a\\b", "a\0b", "%2e%2e"])
def test_a_name_that_is_no_name_is_refused(world: World, bad: str) -> None:
    with pytest.raises(UserError, match="REG-001"):
        world.registry.audit(bad)
