"""The export stage: averaged weights, language part in FP8 blocks, measured against what they were before."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from data_lake.mixture import MixedSamples, open_samples
from data_lake.refs import CheckpointRef, ExportRef, PreprocessedRef
from data_lake.samples import SampleTable
from data_lake.store import Attempt
from errors import UserError
from lookup import lookup
from model_core.policies import POLICIES
from model_core.policies.pi05.inputs import to_inputs
from model_core.policies.policy import Policy
from model_core.quantize.export import Written, read_tensors, write_export
from model_core.specs import ExportSpec
from model_core.training.draws import draw
from tasks.pack import token_count
from tasks.runtime import Note, Progress, Runtime, Summary
from tasks.specs import ExportStage

BLOCK = 16  # samples that act together
TRAINING, HELD_OUT = 0, 1
KEPT = ("policy", "card")  # keys of policy.json that an export takes over from its checkpoint


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionError:
    """Mean absolute difference of normalised actions to the unquantised policy, same samples and noise.

    `by_dim` (A,): per action dimension. `largest`: of any single number. `samples`: which they were.
    """

    mean: float
    largest: float
    by_dim: list[float]
    num_samples: int
    samples: str


def export(
    spec: ExportStage, checkpoint: CheckpointRef, preprocessed: PreprocessedRef, *, out: Attempt, runtime: Runtime
) -> ExportRef:
    """Write what a robot runs and measure what quantising did to its actions.

    Raises `UserError` EXPORT-001 when the action error is above `export.max_action_error`.
    """
    torch.set_num_threads(runtime.threads)
    source, folder = runtime.local(checkpoint.uri), out.path / "policy"
    written = write(source, folder, spec.export.precision)
    out.check()
    error = measure(source, folder, open_samples(runtime.path(preprocessed.uri)), spec.export, runtime)
    table = {
        **asdict(error),
        "action_error": error.mean,
        "max_action_error": spec.export.max_action_error,
        "language_saving": written.language_saving,
        "total_saving": written.total_saving,
        "layers": [asdict(layer) for layer in written.layers],
    }
    (folder / "error.json").write_text(json.dumps(table, indent=1))
    if not error.mean <= spec.export.max_action_error:
        raise _refusal(error, written, spec.export, folder)
    runtime.report(_summary(spec.export, written, error))
    return ExportRef(
        uri=f"{out.uri}/policy",
        fingerprint=out.fingerprint,
        precision=spec.export.precision,
        num_bytes=written.num_bytes,
        action_error=error.mean,
        language_saving=written.language_saving,
        total_saving=written.total_saving,
    )


def write(checkpoint: Path, folder: Path, precision: str) -> Written:
    """An export in `folder` of the averaged weights of a checkpoint, with the card and tokenizer that it holds."""
    described = json.loads((checkpoint / "policy.json").read_text())
    assets = {name: (checkpoint / name).read_bytes() for name in described["files"] if name != described["weights"]}
    tensors = read_tensors(checkpoint / described["weights"])
    policy = {key: described[key] for key in KEPT}
    is_language = lookup(POLICIES, described["policy"]["policy"], "policy").is_language
    return write_export(folder, tensors, policy, precision=precision, is_language=is_language, assets=assets)


def measure(
    before: Path, after: Path, table: SampleTable | MixedSamples, spec: ExportSpec, runtime: Runtime
) -> ActionError:
    """Let both policies act on the same held-out samples (training samples where none are held out)."""
    policies = [Policy.load(folder) for folder in (before, after)]
    ids, samples = _chosen(table, spec.num_samples)
    if samples != "held out":
        runtime.report(Note(text="no episode is held out: the action error is measured on training samples"))
    found = []
    for start in range(0, len(ids), BLOCK):
        some = ids[start : start + BLOCK]
        actions = [_act(policy, table, some, spec.denoise_steps) for policy in policies]
        found.append(np.abs(actions[1] - actions[0]))
        runtime.report(Progress(done=start + len(some), total=len(ids), unit="samples"))
    difference_BHA = np.concatenate(found)
    return ActionError(
        mean=float(difference_BHA.mean()),
        largest=float(difference_BHA.max()),
        by_dim=difference_BHA.mean(axis=(0, 1)).tolist(),
        num_samples=len(ids),
        samples=samples,
    )


def _chosen(table: SampleTable | MixedSamples, num_samples: int) -> tuple[np.ndarray, str]:
    """At most `num_samples` ids, evenly spread over the split, and what they are."""
    ids, samples = table.ids(HELD_OUT), "held out"
    if not len(ids):
        ids, samples = table.ids(TRAINING), "training"
    return ids[np.linspace(0, len(ids) - 1, min(num_samples, len(ids))).round().astype(int)], samples


def _act(policy: Policy, table: SampleTable | MixedSamples, ids: np.ndarray, denoise_steps: int) -> np.ndarray:
    """Normalised actions (B, H, A); the noise follows from the sample ids."""
    batch = table.batch(0, [ids], token_count(policy.spec))
    horizon, action_dim = policy.action_shape
    noise_BKHA, _ = draw(0, 0, ids, num_draws=1, horizon=horizon, action_dim=action_dim)
    inputs = to_inputs(batch, policy.transform)
    return policy.model.act(inputs, torch.from_numpy(noise_BKHA[:, 0]), denoise_steps).numpy()


def _refusal(error: ActionError, written: Written, spec: ExportSpec, folder: Path) -> UserError:
    worst = sorted(written.layers, key=lambda layer: -layer.relative)[:3]
    layers = ", ".join(f"{layer.name} ({layer.relative:.1%})" for layer in worst)
    return UserError(
        "EXPORT-001",
        f"the action error {error.mean:.4f} on {error.num_samples} {error.samples} samples is above "
        f"export.max_action_error = {spec.max_action_error}",
        where=f"largest weight errors: {layers}; all in {folder / 'error.json'}"
        if layers
        else str(folder / "error.json"),
        done="nothing is registered; the checkpoint is intact",
        next_step="train longer, raise export.max_action_error, or set export.precision to none",
    )


def _summary(spec: ExportSpec, written: Written, error: ActionError) -> Summary:
    size = f"{written.num_bytes / 1e6:.2f} MB"
    line = f"{spec.precision} · {size} · action error {error.mean:.4f}"
    if written.layers:
        line = f"language part {written.language_saving:.1%} smaller · {size} · action error {error.mean:.2%} of noise"
    table: list[dict[str, Any]] = [
        {"layer": layer.name, "shape": "x".join(map(str, layer.shape)), "relative error": round(layer.relative, 5)}
        for layer in written.layers
    ]
    return Summary(line=line, table=table)
