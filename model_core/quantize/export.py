"""Exports: the weights a robot runs, the language part in FP8 blocks, with everything needed to act.

The files are those that transformers and vLLM expect of a block-quantised checkpoint: `X.weight` float8 with
`X.weight_scale_inv` beside it, and `quantization_config` in policy.json.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from errors import UserError
from model_core.quantize.fp8_block import BLOCK, dequantise, quantise

WEIGHTS = "model.safetensors"
SCALE_SUFFIX = "_scale_inv"
BF16_BYTES = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerError:
    """What quantising did to one weight: relative L2 error, and the largest error over the largest weight."""

    name: str
    shape: tuple[int, ...]
    relative: float
    largest: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """num_bytes: of the weight file. `language_saving`: of the language weights alone, multipliers counted;
    `total_saving`: of all weights, the kept ones taken as bf16 on both sides. Both against bf16."""

    num_bytes: int
    language_saving: float
    total_saving: float
    layers: tuple[LayerError, ...]


def write_export(
    directory: Path,
    tensors: Mapping[str, Tensor],
    policy: Mapping[str, Any],
    *,
    precision: str,
    is_language: Callable[[str], bool],
    assets: Mapping[str, bytes],
) -> Written:
    """Write weights, policy.json and `assets` (such as a tokenizer) into `directory`.

    policy: policy.json without `quantization`, `weights` and `files`. Tensors that are not language keep their
    bytes and type. Raises `UserError` EXPORT-002 for language weights that are no finite matrices, EXPORT-004
    when nothing is language.
    """
    directory.mkdir(parents=True, exist_ok=True)
    stored = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    layers: list[LayerError] = []
    if precision == "fp8_block128":
        for name in sorted(name for name in tensors if is_language(name)):
            stored[name], stored[name + SCALE_SUFFIX] = quantise(tensors[name], name)
            layers.append(_layer_error(name, tensors[name], stored[name], stored[name + SCALE_SUFFIX]))
        if not layers:
            raise UserError("EXPORT-004", "no weight of this policy counts as language; nothing would be quantised")
    elif precision != "none":
        raise UserError("EXPORT-005", f"unknown precision {precision!r}", next_step="use fp8_block128 or none")
    save_file(stored, directory / WEIGHTS, metadata={"format": "pt"})
    for name, content in assets.items():
        (directory / name).write_bytes(content)
    files = {name: _digest(directory / name) for name in (WEIGHTS, *sorted(assets))}
    kept = sorted({name.rpartition(".")[0] for name in tensors} - {layer.name.rpartition(".")[0] for layer in layers})
    described = {
        **policy,
        "weights": WEIGHTS,
        "quantization": quantization_config(kept) if layers else None,
        "files": files,
    }
    (directory / "policy.json").write_text(json.dumps(described, indent=1))
    return _account(directory / WEIGHTS, tensors, stored, layers)


def quantization_config(kept_modules: list[str]) -> dict[str, Any]:
    """The block of a Hugging Face config; vLLM's older and newer names for what is kept are both there."""
    return {
        "quant_method": "fp8",
        "fmt": "e4m3",
        "activation_scheme": "dynamic",
        "weight_block_size": [BLOCK, BLOCK],
        "modules_to_not_convert": kept_modules,
        "ignored_layers": kept_modules,
    }


def read_tensors(path: Path, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """All weights of an export or checkpoint by name, quantised ones expanded to `dtype`; the rest as stored."""
    with safe_open(path, framework="pt") as stored:
        names = set(stored.keys())
        plain = {
            name for name in names if not (name.endswith(SCALE_SUFFIX) and name.removesuffix(SCALE_SUFFIX) in names)
        }
        return {
            name: dequantise(stored.get_tensor(name), stored.get_tensor(name + SCALE_SUFFIX), dtype)
            if name + SCALE_SUFFIX in names
            else stored.get_tensor(name)
            for name in sorted(plain)
        }


def _layer_error(name: str, weight: Tensor, float8: Tensor, scale_inv: Tensor) -> LayerError:
    wide = weight.detach().to(torch.float32)
    difference = dequantise(float8, scale_inv) - wide
    tiny = torch.finfo(torch.float32).tiny
    return LayerError(
        name=name,
        shape=tuple(weight.shape),
        relative=float(difference.norm() / wide.norm().clamp(min=tiny)),
        largest=float(difference.abs().max() / wide.abs().max().clamp(min=tiny)),
    )


def _account(
    path: Path, tensors: Mapping[str, Tensor], stored: Mapping[str, Tensor], layers: list[LayerError]
) -> Written:
    quantised = [layer.name for layer in layers]
    before = BF16_BYTES * sum(tensors[name].numel() for name in quantised)
    after = sum(stored[name].nbytes + stored[name + SCALE_SUFFIX].nbytes for name in quantised)
    kept = BF16_BYTES * sum(tensor.numel() for name, tensor in tensors.items() if name not in set(quantised))
    return Written(
        num_bytes=path.stat().st_size,
        language_saving=1 - after / before if before else 0.0,
        total_saving=1 - (after + kept) / (before + kept) if before else 0.0,
        layers=tuple(layers),
    )


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
