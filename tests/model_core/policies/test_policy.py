"""A policy from its directory: files are checked first, float8 is expanded, an answer depends on its question alone."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

from errors import UserError
from model_core.policies.pi05.model import Pi05
from model_core.policies.policy import Policy, build_model, policy_from_json
from model_core.quantize.export import write_export
from model_core.types import Observation
from tests.model_core.samples import SPEC, card_of, transform_of


def described() -> dict[str, object]:
    return json.loads(json.dumps({"policy": asdict(SPEC), "card": card_of()}))


def model() -> Pi05:
    torch.manual_seed(0)
    built = build_model(transform_of(), "sdpa_segments")
    for name, parameter in built.named_parameters():
        if "modulation" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    return built


@pytest.fixture(params=["none", "fp8_block128"])
def export(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    write_export(
        tmp_path, model().state_dict(), described(), precision=request.param, is_language=Pi05.is_language, assets={}
    )
    return tmp_path


def observations() -> list[Observation]:
    rng = np.random.default_rng(0)
    views = [{"top", "corner"}, {"top"}, {"corner"}, set(), {"top", "corner"}]
    return [
        Observation(
            views={name: rng.integers(0, 256, (20, 16, 3), dtype=np.uint8) for name in sorted(names)},
            proprio=rng.normal(size=4),
            instruction=("open the drawer", "press the button")[i % 2],
        )
        for i, names in enumerate(views)
    ]


def noise(num: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((num, 4, 4), np.float32)


def test_actions_are_raw_repeatable_and_independent_of_company(export: Path) -> None:
    policy, seen = Policy.load(export), observations()
    together = policy.act(seen, noise(5), 3)
    assert together.shape == (5, 4, 4)
    assert together.dtype == np.float32
    assert np.array_equal(together, policy.act(seen, noise(5), 3))
    for i, one in enumerate(seen):
        assert np.array_equal(policy.act([one], noise(5)[i : i + 1], 3)[0], together[i])
    crowd, crowd_noise = [*seen, *seen, *seen], np.concatenate([noise(5)] * 3)
    assert np.array_equal(policy.act(crowd, crowd_noise, 3)[10:], together)


def test_what_acts_is_what_was_trained(export: Path) -> None:
    trained = Policy(model().eval(), transform_of())
    exact, found = (p.act(observations(), noise(5), 3) for p in (trained, Policy.load(export)))
    is_quantised = json.loads((export / "policy.json").read_text())["quantization"] is not None
    assert np.abs(found - exact).max() <= (0.2 if is_quantised else 0.0)
    assert (np.abs(found - exact).max() > 0) == is_quantised


def test_the_policy_spec_survives_json() -> None:
    assert policy_from_json(json.loads(json.dumps(asdict(SPEC)))) == SPEC


def test_a_changed_byte_names_the_file(export: Path) -> None:
    weights = bytearray((export / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (export / "model.safetensors").write_bytes(weights)
    with pytest.raises(UserError, match=r"POLICY-010: model.safetensors has changed"):
        Policy.load(export)


def test_missing_files_are_named(export: Path) -> None:
    (export / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"model.safetensors is missing"):
        Policy.load(export)
    (export / "policy.json").unlink()
    with pytest.raises(UserError, match=r"policy.json is missing"):
        Policy.load(export)


def test_weights_of_another_policy_are_refused(tmp_path: Path) -> None:
    tensors = model().state_dict()
    tensors["action.actions_in.weight"] = torch.zeros(16, 5)
    write_export(tmp_path, tensors, described(), precision="none", is_language=Pi05.is_language, assets={})
    with pytest.raises(UserError, match=r"POLICY-011.*action\.actions_in\.weight"):
        Policy.load(tmp_path)


def test_weights_that_nobody_vouches_for_are_not_read(export: Path) -> None:
    content = json.loads((export / "policy.json").read_text())
    (export / "policy.json").write_text(json.dumps(content | {"files": {}}))
    with pytest.raises(UserError, match="POLICY-010"):
        Policy.load(export)


def test_noise_of_another_shape_is_refused(export: Path) -> None:
    with pytest.raises(ValueError, match="noise"):
        Policy.load(export).act(observations(), noise(4), 3)
