"""The learning rate by numbers that one can check by head."""

import pytest

from model_core.training.schedule import learning_rate


def test_learning_rate_warms_up_peaks_and_ends_at_nothing() -> None:
    rates = [learning_rate(step, peak=1.0, warmup_steps=3, num_steps=13) for step in range(14)]
    assert rates[:4] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert rates[8] == pytest.approx(0.5)
    assert rates[13] == pytest.approx(0.0)
    assert learning_rate(0, peak=1.0, warmup_steps=0, num_steps=1) == 1.0
