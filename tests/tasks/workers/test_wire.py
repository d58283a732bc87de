"""Specs survive the trip through JSON."""

import dataclasses
import json
from typing import Any

import pytest

from flows.recipes import gr1, smoke, tiny
from tasks.workers.wire import spec_from_json
from tests.model_core.sim.worlds import COLLECT, SCENE


@pytest.mark.parametrize(
    "spec",
    [COLLECT, SCENE, tiny.RECIPE.evaluate, gr1.RECIPE.evaluate, smoke.RECIPE.collect, smoke.RECIPE.policy],
    ids=lambda spec: type(spec).__name__,
)
def test_round_trip(spec: Any) -> None:
    told = json.loads(json.dumps(dataclasses.asdict(spec)))
    assert spec_from_json(type(spec), told) == spec


def test_unknown_fields_are_refused() -> None:
    told = dataclasses.asdict(SCENE) | {"gravity": 1}
    with pytest.raises(KeyError):
        spec_from_json(type(SCENE), told)
