"""Serves a registered policy to MLflow: what `mlflow.pyfunc.load_model` imports and calls.

It travels with the model, beside a copy of `model_core`; nothing else of the project is needed to act.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from model_core.policies.policy import Policy

from model_core.types import Observation

DEFAULTS = {"seed": 0, "denoise_steps": 5}


class ServedPolicy:
    """Answers a batch of observations with action chunks."""

    def __init__(self, policy: Policy, card: Mapping[str, Any], action_horizon: int) -> None:
        self._policy = policy
        self._views: list[str] = card["inputs"]["views"]
        self._chunk_shape = (action_horizon, card["action_dim"])

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> np.ndarray:
        """Raw actions (B, H, A) float32 for a dict or table of columns.

        `view.<name>`: (B, height, width, 3) uint8. `proprio`: (B, P) float. `instruction`: (B,) text.
        params: `seed` of the initial noise (the same for every row, so that an answer does not depend on
        its batch) and `denoise_steps`.
        """
        chosen = {**DEFAULTS, **(params or {})}
        names = [f"view.{view}" for view in self._views if f"view.{view}" in model_input]
        columns = {name: np.stack(list(model_input[name])) for name in [*names, "proprio"]}
        observations = [
            Observation(
                views={name.removeprefix("view."): columns[name][row] for name in names},
                proprio=np.asarray(columns["proprio"][row], np.float32),
                instruction=str(instruction),
            )
            for row, instruction in enumerate(model_input["instruction"])
        ]
        noise_HA = np.random.default_rng(chosen["seed"]).standard_normal(self._chunk_shape, np.float32)
        noise_BHA = np.repeat(noise_HA[None], len(observations), axis=0)
        return np.asarray(self._policy.act(observations, noise_BHA, chosen["denoise_steps"]), np.float32)


def _load_pyfunc(path: str) -> ServedPolicy:
    """MLflow's entry: the export directory inside the model."""
    described = json.loads((Path(path) / "policy.json").read_text())
    return ServedPolicy(Policy.load(Path(path)), described["card"], described["policy"]["action_horizon"])
