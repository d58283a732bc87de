"""What is done to an action before a simulator gets it, and whose results may be taken over."""

from importlib.metadata import version

import numpy as np
import pytest

from model_core.sim.simulator import is_installed, vet


@pytest.mark.parametrize(
    ("action", "safe", "limit_hit", "non_finite"),
    [
        ([0.5, -1.0], [0.5, -1.0], False, False),
        ([1.0 + 5e-7, 0.0], [1.0, 0.0], False, False),
        ([1.1, -3.0], [1.0, -1.0], True, False),
        ([np.nan, 0.3], [0.0, 0.0], False, True),
        ([np.inf, 0.3], [0.0, 0.0], False, True),
    ],
)
def test_vet(action: list[float], safe: list[float], limit_hit: bool, non_finite: bool) -> None:
    given = np.array(action)
    kept, hit, refused = vet(given, -1.0, 1.0)
    assert (kept.tolist(), hit, refused) == (safe, limit_hit, non_finite)
    assert np.array_equal(given, action, equal_nan=True)


def test_results_of_other_versions_are_not_taken_over() -> None:
    assert is_installed({"versions": {"numpy": version("numpy")}})
    assert not is_installed({"versions": {"numpy": "0.1"}})
    assert not is_installed({"versions": {"no-such-simulator": "1"}})
