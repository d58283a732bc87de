"""Serves a registered policy to MLflow: what `mlflow.pyfunc.load_model` imports and calls.

It travels with the model, beside a copy of `model_core`; nothing else of the project is needed to act.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from errors import UserError
from model_core.policies.policy import Policy
from model_core.types import Observation

COLUMNS = ("view.", "proprio", "instruction")
DEFAULTS = {"seed": 0, "denoise_steps": 5}


class ServedPolicy:
    """Answers a batch of observations with action chunks."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> np.ndarray:
        """Raw actions (B, H, A) float32 for a dict or table of columns.

        `view.<name>`: (B, height, width, 3) uint8. `proprio`: (B, P) float. `instruction`: (B,) text.
        params: `seed` of the initial noise (the same for every row, so that an answer does not depend on
        its batch) and `denoise_steps`. Raises `UserError` SERVE-001 for columns of unequal length and the like:
        a robot must not move by half an observation.
        """
        chosen = {**DEFAULTS, **(params or {})}
        _check(model_input, chosen)
        views = [view for view in self._policy.spec.inputs.views if f"view.{view}" in model_input]
        observations = [
            Observation(
                views={view: np.asarray(model_input[f"view.{view}"][row]) for view in views},
                proprio=np.asarray(model_input["proprio"][row], np.float32),
                instruction=str(instruction),
            )
            for row, instruction in enumerate(model_input["instruction"])
        ]
        noise_HA = np.random.default_rng(chosen["seed"]).standard_normal(self._policy.action_shape, np.float32)
        noise_BHA = np.repeat(noise_HA[None], len(observations), axis=0)
        return self._policy.act(observations, noise_BHA, chosen["denoise_steps"])


def _check(model_input: Any, chosen: Mapping[str, Any]) -> None:
    rows = {name: len(model_input[name]) for name in model_input if str(name).startswith(COLUMNS)}
    if missing := {"proprio", "instruction"} - rows.keys():
        raise UserError("SERVE-001", f"there is no column {min(missing)!r}")
    if len(set(rows.values())) != 1 or not rows["instruction"]:
        told = ", ".join(f"{name} {num}" for name, num in rows.items())
        raise UserError("SERVE-001", f"every column needs the same number of rows, at least one: {told}")
    if chosen["denoise_steps"] < 1 or chosen["seed"] < 0:
        raise UserError("SERVE-001", f"denoise_steps must be 1 at least and seed 0 at least: {dict(chosen)}")


def _load_pyfunc(path: str) -> ServedPolicy:
    """MLflow's entry: the export directory inside the model."""
    return ServedPolicy(Policy.load(path))
