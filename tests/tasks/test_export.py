"""The export stage on a checkpoint of a real small policy: measured, refused when it is bad, loadable."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from data_lake.refs import CheckpointRef
from errors import UserError
from model_core.policies.pi05.model import Pi05
from model_core.policies.policy import Policy
from model_core.training import checkpoint
from model_core.training.state import fresh_state
from model_core.types import Observation
from tasks import export as stage
from tasks.export import export, measure, write
from tasks.runtime import Note, Summary
from tasks.workers.training_run import bind
from tests.tasks import small_lake
from tests.tasks.small_lake import DIM, EXPORT, INSTRUCTIONS, POLICY, SIZE, TRAIN, SmallLake


@pytest.fixture(scope="module", params=[1, 0], ids=["held out", "training"])
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    torch.set_num_threads(1)
    return small_lake.make(tmp_path_factory.mktemp("export"), heldout=request.param)


@pytest.fixture(scope="module")
def trained(lake: SmallLake) -> CheckpointRef:
    """A checkpoint of weights that act: the output layers of a fresh policy are not left at zero."""
    folder = lake.runtime.path(lake.preprocessed.uri)
    described = json.loads(json.dumps(stage.asdict(POLICY)))
    torch.manual_seed(0)
    bound = bind(described, json.loads((folder / "card.json").read_text()), folder, TRAIN.attention)
    for parameter in bound.model.parameters():
        if not parameter.any():
            torch.nn.init.normal_(parameter, std=0.1)
    root = lake.runtime.lake / "train" / "t" / "attempts" / "1" / "checkpoints"
    state = fresh_state(bound.model, TRAIN)
    place = checkpoint.save(root, state, policy=bound.policy_json, assets=bound.assets)
    return CheckpointRef(
        uri=place.relative_to(lake.runtime.lake).as_posix(), fingerprint="t", step=0, samples_seen=0, loss=0
    )


def run(lake: SmallLake, trained: CheckpointRef, **changed: object) -> tuple[object, Path]:
    spec = replace(EXPORT, export=replace(EXPORT.export, **changed))
    out = lake.attempt("export", spec, trained)
    try:
        return export(spec, trained, lake.preprocessed, out=out, runtime=lake.runtime), out.path
    finally:
        out.release()


def test_the_language_part_shrinks_and_everything_else_keeps_its_bytes(lake: SmallLake, trained: CheckpointRef) -> None:
    ref, _ = run(lake, trained)
    folder = lake.runtime.path(ref.uri)
    before = load_file(lake.runtime.path(trained.uri) / "ema.safetensors")
    after = load_file(folder / "model.safetensors")
    language = {name for name in before if Pi05.is_language(name)}
    assert language == {
        *(f"language.layers.0.{name}.weight" for name in ("attention.qkv", "attention.out", "mlp.gate_up", "mlp.down")),
        "language.tail.attention.kv.weight",
    }
    assert {name for name in before if name.startswith("language.") and name not in language} == {
        "language.embed.weight",
        "language.layers.0.norm1.weight",
        "language.layers.0.norm2.weight",
        "language.tail.norm1.weight",
    }
    for name in before.keys() - language:
        assert torch.equal(before[name], after[name]), name
    assert after.keys() == before.keys() | {f"{name}_scale_inv" for name in language}
    assert 0.45 < ref.language_saving < 0.5
    assert 0 < ref.total_saving < ref.language_saving
    assert ref.num_bytes == (folder / "model.safetensors").stat().st_size


def test_the_error_is_measured_told_and_small_but_not_nothing(lake: SmallLake, trained: CheckpointRef) -> None:
    ref, _ = run(lake, trained, num_samples=5)
    table = json.loads((lake.runtime.path(ref.uri) / "error.json").read_text())
    assert 0 < ref.action_error < 0.2
    assert table["action_error"] == ref.action_error == pytest.approx(np.mean(table["by_dim"]))
    assert table["num_samples"] == 5
    expected = "held out" if lake.preprocessed.num_heldout else "training"
    assert table["samples"] == expected
    assert any(isinstance(report, Note) and "training samples" in report.text for report in lake.reports) == (
        expected == "training"
    )
    assert len(table["layers"]) == 5
    assert all(0 < layer["relative"] < 0.05 for layer in table["layers"])
    assert any(isinstance(report, Summary) and "language part" in report.line for report in lake.reports)


def test_precision_none_changes_no_action(lake: SmallLake, trained: CheckpointRef) -> None:
    ref, _ = run(lake, trained, precision="none", max_action_error=0.0)
    assert (ref.action_error, ref.language_saving, ref.precision) == (0.0, 0.0, "none")


def test_too_large_an_error_fails_and_names_the_layers(lake: SmallLake, trained: CheckpointRef) -> None:
    with pytest.raises(UserError, match="EXPORT-001.*above export.max_action_error = 1e-09") as caught:
        run(lake, trained, max_action_error=1e-9)
    assert "language." in caught.value.where


def test_multipliers_along_the_wrong_axis_are_caught(lake: SmallLake, trained: CheckpointRef, tmp_path: Path) -> None:
    source = lake.runtime.path(trained.uri)
    write(source, tmp_path, "fp8_block128")
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    for name in tensors:
        if name.endswith("_scale_inv"):
            tensors[name] = tensors[name] * 3
    save_file(tensors, path)
    described = json.loads((tmp_path / "policy.json").read_text())
    described["files"]["model.safetensors"] = checkpoint.file_digest(path)
    (tmp_path / "policy.json").write_text(json.dumps(described))
    table = stage.SampleTable(lake.runtime.path(lake.preprocessed.uri))
    assert measure(source, tmp_path, table, EXPORT.export, lake.runtime).mean > 0.02


def test_checkpoint_and_export_load_as_policies_and_act_alike(lake: SmallLake, trained: CheckpointRef) -> None:
    ref, _ = run(lake, trained)
    seen = [
        Observation(
            views={"top": np.full((SIZE, SIZE, 3), 90, np.uint8)},
            proprio=np.zeros(DIM, np.float32),
            instruction=INSTRUCTIONS[0],
        )
    ]
    noise = np.random.default_rng(0).standard_normal((1, POLICY.action_horizon, DIM), np.float32)
    left, right = (Policy.load(lake.runtime.path(uri)).act(seen, noise, 3) for uri in (trained.uri, ref.uri))
    assert left.shape == (1, POLICY.action_horizon, DIM)
    assert 0 < np.abs(left - right).mean() < 0.2
