"""A policy that runs: loaded from one directory, observations in, raw actions out. Needs torch and numpy alone."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from errors import UserError
from lookup import lookup
from model_core.policies import POLICIES
from model_core.policies.pi05.inputs import to_inputs
from model_core.quantize.export import read_tensors
from model_core.specs import InputSpec, PolicySpec
from model_core.transforms import InputTransform
from model_core.types import Observation, TorchBatch

BLOCK_SIZE = 8  # observations that are computed together, always: shapes decide how sums are rounded


class ActingModel(Protocol):
    """What a policy's network gives for acting."""

    def act(self, batch: TorchBatch, noise_BHA: Tensor, denoise_steps: int) -> Tensor: ...


class Policy:
    """A network and the transforms it was trained with.

    What it does for an observation depends on that observation, its noise and the weights alone: observations of
    one length class are computed in blocks of one fixed size, filled up with repetitions.
    """

    def __init__(
        self, model: ActingModel, transform: InputTransform, *, device: str = "cpu", block_size: int = BLOCK_SIZE
    ) -> None:
        self.model, self.transform, self.device, self.block_size = model, transform, device, block_size

    @classmethod
    def load(cls, directory: Path | str, *, device: str = "cpu", attention: str | None = None) -> Self:
        """From an export, or from a checkpoint (with its averaged weights).

        Float8 weights are expanded for computing. Raises `UserError` POLICY-010 naming a file that is missing or
        has changed, POLICY-011 when the weights are not those of the policy that policy.json describes.
        """
        folder = Path(directory)
        described = _read_described(folder)
        transform = InputTransform(described["card"], policy_from_json(described["policy"]), folder)
        model = build_model(transform, attention or ("torch_varlen" if device.startswith("cuda") else "sdpa_segments"))
        weights = read_tensors(folder / described["weights"])
        expected = model.state_dict()
        odd = sorted(weights.keys() ^ expected.keys())
        odd += [name for name in weights.keys() & expected.keys() if weights[name].shape != expected[name].shape]
        if odd:
            raise UserError("POLICY-011", f"the weights are of another policy: {', '.join(odd[:4])}", where=str(folder))
        model.load_state_dict({name: tensor.to(expected[name].dtype) for name, tensor in weights.items()})
        return cls(model.to(device).eval(), transform, device=device)

    @property
    def spec(self) -> PolicySpec:
        return self.transform.policy

    @property
    def action_shape(self) -> tuple[int, int]:
        """(H, A) of an action chunk, and of its noise."""
        return self.spec.action_horizon, self.transform.robot.action_dim

    def act(self, observations: Sequence[Observation], noise_BHA: np.ndarray, denoise_steps: int) -> np.ndarray:
        """Raw actions (B, H, A) float32 of B observations, from standard normal noise (B, H, A)."""
        if noise_BHA.shape != (len(observations), *self.action_shape):
            raise ValueError(f"noise {noise_BHA.shape} for {len(observations)} observations of {self.action_shape}")
        encoded = self.transform.encode(observations)
        num_views = np.bincount(encoded.image_sample, minlength=len(observations))
        actions_BHA = np.empty(noise_BHA.shape, np.float32)
        for length_class in sorted(set(zip(num_views.tolist(), encoded.text_lengths.tolist(), strict=True))):
            members = np.flatnonzero((num_views == length_class[0]) & (encoded.text_lengths == length_class[1]))
            for start in range(0, len(members), self.block_size):
                some = members[start : start + self.block_size]
                block = np.concatenate([some, np.repeat(some[-1:], self.block_size - len(some))])
                found = self._act_block([observations[i] for i in block], noise_BHA[block], denoise_steps)
                actions_BHA[some] = found[: len(some)]
        return actions_BHA

    def _act_block(self, observations: list[Observation], noise_BHA: np.ndarray, denoise_steps: int) -> np.ndarray:
        encoded = self.transform.encode(observations)
        batch = to_inputs(encoded, self.transform, self.device)
        learnt = self.model.act(batch, torch.from_numpy(np.ascontiguousarray(noise_BHA)), denoise_steps)
        return self.transform.decode(learnt.float().cpu().numpy(), encoded.proprio)


def build_model(transform: InputTransform, attention: str) -> Any:
    """A fresh network that fits the transform's data; weights follow torch's seed."""
    return lookup(POLICIES, transform.policy.policy, "policy")(
        transform.policy,
        proprio_dim=transform.robot.state_dim,
        action_dim=transform.robot.action_dim,
        vocabulary=transform.tokenizer.size,
        attention=attention,
    )


def policy_from_json(described: Mapping[str, Any]) -> PolicySpec:
    """A PolicySpec from its JSON form."""
    inputs = {**described["inputs"], "views": tuple(described["inputs"]["views"])}
    return PolicySpec(**{**described, "inputs": InputSpec(**inputs)})


def _read_described(folder: Path) -> dict[str, Any]:
    """policy.json, after every file that it vouches for was found to be what it says."""
    path = folder / "policy.json"
    if not path.is_file():
        raise UserError(
            "POLICY-010",
            "policy.json is missing",
            where=str(folder),
            next_step="name the directory of an export or of a checkpoint",
        )
    described = json.loads(path.read_text())
    for name, expected in described["files"].items():
        if not (folder / name).is_file():
            raise UserError("POLICY-010", f"{name} is missing", where=str(folder), next_step="copy the export again")
        with (folder / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                raise UserError(
                    "POLICY-010",
                    f"{name} has changed since it was written (SHA-256 differs)",
                    where=str(folder / name),
                    next_step="copy or export it again; it was not loaded",
                )
    if described["weights"] not in described["files"]:
        raise UserError(
            "POLICY-010", f"policy.json does not vouch for its weights {described['weights']}", where=str(path)
        )
    return described
