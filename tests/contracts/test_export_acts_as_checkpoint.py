"""What a robot loads from the registry acts as the checkpoint does, within the error that the export reports."""

import mlflow
import numpy as np
import pytest

from model_core.policies.policy import Policy
from tasks.registry import tracking_uri
from tests.contracts.built import Built
from tests.contracts.recorded import Recorded
from tests.contracts.test_what_serving_sees import observations


def test_the_registered_policy_acts_as_the_checkpoint(
    built: Built, recorded: list[Recorded], monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = Policy.load(built.folder("train"))
    version = built.ref("register")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking_uri(built.home))
    served = mlflow.pyfunc.load_model(f"models:/{version['name']}/{version['version']}")
    heldout = built.loader().table.ids(1)
    seen = [each for each in observations(built, recorded, heldout) if len(each.views) == 2][:16]
    assert len(seen) == 16
    columns = {f"view.{view}": np.stack([each.views[view] for each in seen]) for view in ("top", "corner")}
    columns |= {"proprio": np.stack([each.proprio for each in seen])}
    columns |= {"instruction": np.array([each.instruction for each in seen])}
    noise = np.random.default_rng(0).standard_normal(trained.action_shape, np.float32)
    steps = built.records["evaluate"]["identity"]["spec"]["evaluate"]["denoise_steps"]
    expected = trained.act(seen, np.repeat(noise[None], len(seen), axis=0), steps)
    found = served.predict(columns, params={"seed": 0, "denoise_steps": steps})
    another = np.random.default_rng(1).standard_normal(trained.action_shape, np.float32)
    apart = ((trained.act(seen, np.repeat(another[None], len(seen), axis=0), steps) - expected) ** 2).mean()
    assert 0 < ((found - expected) ** 2).mean() < 0.01 * apart
    distance_FE = np.abs(found[:, None] - expected[None, :]).mean(axis=(2, 3))
    assert distance_FE.argmin(axis=1).tolist() == list(range(len(seen))), "each acts on its own observation"
