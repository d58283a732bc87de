"""Checkpoints: safetensors and JSON in a directory that exists under its name only when it is complete.

A checkpoint is written beside its place, its manifest (sizes and SHA-256) last, and renamed; reading verifies
the manifest, so a torn or changed one is named and passed over.
"""

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from errors import UserError
from model_core.training.state import StepRecord, TrainState

MANIFEST = "manifest.json"


def directory_of(root: Path, step: int) -> Path:
    """Where the checkpoint of `step` lies under `root`."""
    return root / f"step-{step:06d}"


def save(root: Path, state: TrainState, *, policy: dict[str, Any], assets: dict[str, bytes]) -> Path:
    """Write `state` under `root`; returns its directory. `policy` is policy.json, `assets` files beside it.

    Deterministic: equal states give equal bytes. Raises `UserError` TRAIN-004 rather than store NaN.
    """
    place = directory_of(root, state.step)
    draft = root / f".draft-{place.name}-{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    tensors = {
        "model.safetensors": _contiguous(state.model.state_dict()),
        "ema.safetensors": _contiguous(state.ema),
        "optimizer.safetensors": _optimizer_tensors(state),
    }
    for name, content in tensors.items():
        _refuse_non_finite(name, content)
        save_file(content, draft / name)
    for name, content in assets.items():
        (draft / name).write_bytes(content)
    (draft / "history.jsonl").write_text("".join(json.dumps(to_json(record)) + "\n" for record in state.history))
    (draft / "state.json").write_text(json.dumps(_counters(state), indent=1))
    files = {name: file_digest(draft / name) for name in ("ema.safetensors", *sorted(assets))}
    (draft / "policy.json").write_text(json.dumps(policy | {"weights": "ema.safetensors", "files": files}, indent=1))
    _write_manifest(draft)
    if place.exists():  # left by a job that died after this step; ours vouches for the same step
        shutil.rmtree(place)
    os.replace(draft, place)
    _sync(root)
    return place


def restore(directory: Path, state: TrainState) -> None:
    """Fill `state` from a complete checkpoint, exactly as it was saved.

    Raises `UserError` TRAIN-005 when the tensors are not those of the model.
    """
    counters = json.loads((directory / "state.json").read_text())
    weights = load_file(directory / "model.safetensors")
    if weights.keys() != state.model.state_dict().keys():
        odd = sorted(weights.keys() ^ state.model.state_dict().keys())
        raise UserError("TRAIN-005", f"the checkpoint is of another model: {', '.join(odd[:5])}", where=str(directory))
    state.model.load_state_dict(weights)
    average = load_file(directory / "ema.safetensors")
    state.ema = {name: average[name].to(held.device) for name, held in state.ema.items()}
    _load_optimizer(state, load_file(directory / "optimizer.safetensors"))
    for name in ("step", "samples_seen", "updates", "skipped_in_row", "sample_digest"):
        setattr(state, name, counters[name])
    lines = (directory / "history.jsonl").read_text().splitlines()
    state.history = [_from_json(json.loads(line)) for line in lines]


def newest_complete(roots: Iterable[Path], on_torn: Callable[[str], object]) -> Path | None:
    """The complete checkpoint with the highest step under any of `roots`; None when there is none.

    `on_torn` is told, one sentence each, of newer ones that were passed over and why.
    """
    found = [path for root in roots if root.is_dir() for path in root.glob("step-*") if path.is_dir()]
    for path in sorted(found, key=lambda path: path.name, reverse=True):
        fault = find_fault(path)
        if fault is None:
            return path
        on_torn(f"checkpoint {path} passed over: {fault}")
    return None


def find_fault(directory: Path) -> str | None:
    """What is wrong with the files of a checkpoint or export with a manifest, naming the file; None if nothing."""
    manifest = directory / MANIFEST
    if not manifest.is_file():
        return f"no {MANIFEST}"
    try:
        listed = json.loads(manifest.read_text())["files"]
    except (ValueError, KeyError):
        return f"{MANIFEST} cannot be read"
    for name, expected in listed.items():
        path = directory / name
        if not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != expected["bytes"]:
            return f"{name} has {path.stat().st_size} bytes instead of {expected['bytes']}"
        if file_digest(path) != expected["sha256"]:
            return f"{name} has changed (SHA-256 differs)"
    return None


def prune(root: Path, keep: int = 2) -> None:
    """Remove all but the newest `keep` checkpoints, and drafts of dead writers."""
    complete = sorted(path for path in root.glob("step-*") if path.is_dir())
    for path in [*complete[:-keep], *root.glob(".draft-*")]:
        shutil.rmtree(path, ignore_errors=True)


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def to_json(record: StepRecord) -> dict[str, Any]:
    """A record as strict JSON: null where a number is not finite."""
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in asdict(record).items()
    }


def _from_json(line: dict[str, Any]) -> StepRecord:
    numbers: dict[str, Any] = {key: math.nan if value is None else value for key, value in line.items()}
    return StepRecord(**numbers)


def _contiguous(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}


def _optimizer_tensors(state: TrainState) -> dict[str, Tensor]:
    """Moments and step counts by parameter name, so that order in memory does not matter."""
    tensors = {}
    for name, parameter in state.model.named_parameters():
        for key, value in state.optimizer.state.get(parameter, {}).items():
            tensors[f"{key}.{name}"] = value.detach().clone().contiguous()
    return tensors


def _load_optimizer(state: TrainState, tensors: dict[str, Tensor]) -> None:
    by_name = dict(state.model.named_parameters())
    for full_name, value in tensors.items():
        key, name = full_name.split(".", 1)
        state.optimizer.state[by_name[name]][key] = value.to(by_name[name].device)


def _counters(state: TrainState) -> dict[str, Any]:
    """`loss` is the mean over the last 50 steps that were not skipped."""
    recent = [record.loss for record in state.history if not record.skipped][-50:]
    return {
        "layout": 1,
        "step": state.step,
        "samples_seen": state.samples_seen,
        "updates": state.updates,
        "skipped_in_row": state.skipped_in_row,
        "sample_digest": state.sample_digest,
        "loss": math.fsum(recent) / len(recent) if recent else None,
    }


def _refuse_non_finite(name: str, tensors: dict[str, Tensor]) -> None:
    for key, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise UserError(
                "TRAIN-004",
                f"{key} in {name} is not finite; no checkpoint is written",
                next_step="lower train.learning_rate or train.clip_norm; earlier checkpoints are intact",
            )


def _write_manifest(directory: Path) -> None:
    files = {}
    for path in sorted(directory.iterdir()):
        _sync(path)
        files[path.name] = {"bytes": path.stat().st_size, "sha256": file_digest(path)}
    draft = directory / (MANIFEST + ".draft")
    draft.write_text(json.dumps({"layout": 1, "files": files}, indent=1))
    _sync(draft)
    os.replace(draft, directory / MANIFEST)
    _sync(directory)


def _sync(path: Path) -> None:
    """Ask the disk to keep a file or a directory's names."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
