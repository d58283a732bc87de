"""Checkpoints: complete or passed over by name, and never half of one."""

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file

from errors import UserError
from model_core.training import checkpoint
from model_core.training.checkpoint import MANIFEST, find_fault, newest_complete, prune, restore, save
from model_core.training.state import TrainState
from model_core.training.trainer import train_step
from tests.model_core.training.fake_policy import ACTION_DIM, HORIZON, SPEC, inputs, state_of

FILES = [
    "ema.safetensors",
    "history.jsonl",
    "model.safetensors",
    "optimizer.safetensors",
    "policy.json",
    "state.json",
    "tokenizer.model",
]


@pytest.fixture
def trained() -> TrainState:
    state = state_of()
    for step_input in inputs(0, 2):
        train_step(state, SPEC, step_input, (HORIZON, ACTION_DIM))
    return state


def put(root: Path, state: TrainState) -> Path:
    return save(
        root, state, policy={"policy": {"depth": 1}, "card": {"action_dim": 3}}, assets={"tokenizer.model": b"t"}
    )


def advance(state: TrainState) -> TrainState:
    train_step(state, SPEC, next(inputs(state.step, state.step + 1)), (HORIZON, ACTION_DIM))
    return state


def test_everything_comes_back(tmp_path: Path, trained: TrainState) -> None:
    place = put(tmp_path, trained)
    assert sorted(path.name for path in place.iterdir()) == sorted([*FILES, MANIFEST])
    again = state_of()
    restore(place, again)
    for name in ("step", "samples_seen", "updates", "skipped_in_row", "sample_digest", "history"):
        assert getattr(again, name) == getattr(trained, name)
    assert advance(again).history == advance(trained).history


def test_policy_json_names_the_averaged_weights_and_vouches_for_them(tmp_path: Path, trained: TrainState) -> None:
    place = put(tmp_path, trained)
    policy = json.loads((place / "policy.json").read_text())
    assert policy["policy"] == {"depth": 1} and policy["card"] == {"action_dim": 3}
    assert policy["weights"] == "ema.safetensors"
    assert policy["files"] == {
        name: checkpoint.file_digest(place / name) for name in ("ema.safetensors", "tokenizer.model")
    }
    assert load_file(place / "ema.safetensors").keys() == trained.model.state_dict().keys()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harm", ["truncate", "flip", "drop"])
def test_a_torn_or_changed_checkpoint_is_named_and_the_one_before_it_is_used(
    name: str, harm: str, tmp_path: Path, trained: TrainState
) -> None:
    good = put(tmp_path, trained)
    path = put(tmp_path, advance(trained)) / name
    content = path.read_bytes()
    if harm == "drop":
        path.unlink()
    else:
        path.write_bytes(content[:-1] if harm == "truncate" else content[:-1] + bytes([content[-1] ^ 1]))
    told: list[str] = []
    assert newest_complete([tmp_path], told.append) == good
    assert len(told) == 1 and "step-000003" in told[0] and name in told[0]


def test_without_a_manifest_it_does_not_count_and_a_draft_is_not_seen(tmp_path: Path, trained: TrainState) -> None:
    place = put(tmp_path, trained)
    shutil.copytree(place, tmp_path / ".draft-step-000009-1")
    (place / MANIFEST).unlink()
    told: list[str] = []
    assert newest_complete([tmp_path, tmp_path / "absent"], told.append) is None
    assert told == [f"checkpoint {place} passed over: no {MANIFEST}"]
    (place / MANIFEST).write_text("{")
    assert find_fault(place) == f"{MANIFEST} cannot be read"


def test_the_newest_of_several_attempts_wins(tmp_path: Path, trained: TrainState) -> None:
    put(tmp_path / "1", trained)
    newer = put(tmp_path / "2", advance(trained))
    assert newest_complete([tmp_path / "1", tmp_path / "2"], print) == newer


def test_prune_keeps_the_last_two_and_sweeps_drafts(tmp_path: Path, trained: TrainState) -> None:
    for _ in range(4):
        put(tmp_path, advance(trained))
    (tmp_path / ".draft-step-000009-1").mkdir()
    prune(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000005", "step-000006"]


def test_another_models_checkpoint_is_refused(tmp_path: Path, trained: TrainState) -> None:
    place = put(tmp_path, trained)
    other = state_of()
    other.model.add_module("extra", type(other.model)())
    with pytest.raises(UserError, match="TRAIN-005.*extra"):
        restore(place, other)
