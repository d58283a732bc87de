"""Policies by name; each is built as `Class(spec, proprio_dim=…, action_dim=…, vocabulary=…, attention=…)`.

`loss(batch, noise_NKHA, time_NK) -> (N,)` for training, `act(batch, noise_BHA, denoise_steps) -> (B, H, A)` for acting.
"""

POLICIES = {
    "pi05": "model_core.policies.pi05.model:Pi05",
}
