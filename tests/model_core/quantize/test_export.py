"""An export: language in blocks, everything else byte for byte, sizes as they are."""

import hashlib
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from errors import UserError
from model_core.quantize.export import quantization_config, read_tensors, write_export

POLICY = {"policy": {"depth": 1}, "card": {"action_dim": 3}}


def is_language(name: str) -> bool:
    return name.startswith("prefix.") and name.endswith("linear.weight")


@pytest.fixture
def tensors() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {
        "prefix.0.linear.weight": torch.randn(256, 128),
        "prefix.0.linear.bias": torch.randn(256),
        "prefix.0.norm.weight": torch.randn(128),
        "vision.linear.weight": torch.randn(130, 7).to(torch.bfloat16),
        "suffix.linear.weight": torch.randn(64, 64),
    }


def test_only_language_changes(tmp_path: Path, tensors: dict[str, torch.Tensor]) -> None:
    write_export(tmp_path, tensors, POLICY, precision="fp8_block128", is_language=is_language, assets={})
    stored = load_file(tmp_path / "model.safetensors")
    name = "prefix.0.linear.weight"
    assert stored.keys() == tensors.keys() | {name + "_scale_inv"}
    assert stored[name].dtype == torch.float8_e4m3fn and stored[name + "_scale_inv"].shape == (2, 1)
    for kept in tensors.keys() - {name}:
        assert stored[kept].dtype == tensors[kept].dtype
        assert torch.equal(stored[kept].view(torch.uint8), tensors[kept].view(torch.uint8)), kept


def test_it_reads_back_as_the_model_was_but_for_rounding(tmp_path: Path, tensors: dict[str, torch.Tensor]) -> None:
    write_export(tmp_path, tensors, POLICY, precision="fp8_block128", is_language=is_language, assets={})
    back = read_tensors(tmp_path / "model.safetensors")
    assert back.keys() == tensors.keys()
    name = "prefix.0.linear.weight"
    error = (back[name] - tensors[name]).norm() / tensors[name].norm()
    assert 0.01 < error < 0.04  # three mantissa bits


def test_sizes_by_head(tmp_path: Path, tensors: dict[str, torch.Tensor]) -> None:
    written = write_export(tmp_path, tensors, POLICY, precision="fp8_block128", is_language=is_language, assets={})
    language = 256 * 128
    kept = 256 + 128 + 130 * 7 + 64 * 64
    assert written.language_saving == pytest.approx(1 - (language + 2 * 4) / (2 * language))
    assert written.total_saving == pytest.approx(1 - (language + 2 * 4 + 2 * kept) / (2 * language + 2 * kept))
    assert written.num_bytes == (tmp_path / "model.safetensors").stat().st_size
    assert [layer.name for layer in written.layers] == ["prefix.0.linear.weight"]
    assert 0 < written.layers[0].largest <= 1 / 16


def test_policy_json_says_how_to_read_it(tmp_path: Path, tensors: dict[str, torch.Tensor]) -> None:
    write_export(
        tmp_path, tensors, POLICY, precision="fp8_block128", is_language=is_language, assets={"tokenizer.model": b"x"}
    )
    described = json.loads((tmp_path / "policy.json").read_text())
    kept = ["prefix.0.norm", "suffix.linear", "vision.linear"]
    assert described["policy"] == {"depth": 1} and described["card"] == {"action_dim": 3}
    assert (
        described["quantization"]
        == quantization_config(kept)
        == {
            "quant_method": "fp8",
            "fmt": "e4m3",
            "activation_scheme": "dynamic",
            "weight_block_size": [128, 128],
            "modules_to_not_convert": kept,
            "ignored_layers": kept,
        }
    )
    assert described["files"] == {
        name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        for name in ("model.safetensors", "tokenizer.model")
    }


def test_precision_none_changes_no_byte(tmp_path: Path, tensors: dict[str, torch.Tensor]) -> None:
    written = write_export(tmp_path, tensors, POLICY, precision="none", is_language=is_language, assets={})
    stored = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(stored[name].view(torch.uint8), tensors[name].view(torch.uint8)) for name in tensors)
    assert (written.language_saving, written.total_saving, written.layers) == (0.0, 0.0, ())
    assert json.loads((tmp_path / "policy.json").read_text())["quantization"] is None


def test_equal_weights_give_equal_bytes(tmp_path: Path, tensors: dict[str, torch.Tensor]) -> None:
    for name in ("a", "b"):
        write_export(tmp_path / name, tensors, POLICY, precision="fp8_block128", is_language=is_language, assets={})
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_tied_weights_are_stored_for_each_name(tmp_path: Path, tensors: dict[str, torch.Tensor]) -> None:
    tied = tensors | {"head.weight": tensors["suffix.linear.weight"]}
    write_export(tmp_path, tied, POLICY, precision="fp8_block128", is_language=is_language, assets={})
    assert torch.equal(load_file(tmp_path / "model.safetensors")["head.weight"], tensors["suffix.linear.weight"])


def test_refusals_name_what_is_wrong(tmp_path: Path, tensors: dict[str, torch.Tensor]) -> None:
    tensors["prefix.0.linear.weight"][3, 5] = float("nan")
    with pytest.raises(UserError, match="EXPORT-002: prefix.0.linear.weight"):
        write_export(tmp_path, tensors, POLICY, precision="fp8_block128", is_language=is_language, assets={})
    with pytest.raises(UserError, match="EXPORT-004"):
        write_export(tmp_path, tensors, POLICY, precision="fp8_block128", is_language=lambda name: False, assets={})
    with pytest.raises(UserError, match="EXPORT-005"):
        write_export(tmp_path, tensors, POLICY, precision="int4", is_language=is_language, assets={})
