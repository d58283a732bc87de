"""Scripted experts: from privileged state to a clean action."""

from collections.abc import Callable

import numpy as np
from metaworld.policies import ENV_POLICY_MAP

from errors import UserError


def metaworld_expert(task: str) -> Callable[[np.ndarray], np.ndarray]:
    """Meta-World's own scripted policy of `task`: (39,) observation to (4,) float32 action in [-1, 1]."""
    if task not in ENV_POLICY_MAP:
        raise UserError("SIM-002", f"Meta-World has no expert for {task!r}")
    policy = ENV_POLICY_MAP[task]()

    def act(privileged: np.ndarray) -> np.ndarray:
        return np.clip(policy.get_action(privileged), -1.0, 1.0).astype(np.float32)

    return act
