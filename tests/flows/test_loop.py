"""The loop calls every stage of the catalogue once, in order, and feeds each what it declares."""

import inspect
import pkgutil
from typing import Any

from data_lake.refs import Ref
from flows.loop import closed_loop
from flows.recipe import load, resolve
from tasks.build import Stage
from tasks.catalogue import LOOP


def walked(recipe: str, source: Ref | None) -> list[tuple[str, int]]:
    seen: list[tuple[str, int]] = []

    def call(stage: Stage, spec: Any, *refs: Ref) -> Ref:
        parameters = inspect.signature(pkgutil.resolve_name(stage.fn)).parameters.values()
        positional = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
        assert len(positional) == 1 + len(refs), stage.name
        seen.append((stage.name, len(refs)))
        return Ref(uri=stage.name, fingerprint=stage.name)

    assert closed_loop(resolve(load(recipe)), source, call).uri == "register"
    return seen


def test_every_stage_once_in_order() -> None:
    assert [name for name, _ in walked("tiny", None)] == list(LOOP)


def test_a_recipe_without_collect_begins_with_its_source() -> None:
    source = Ref(uri="s", fingerprint="s")
    assert [name for name, _ in walked("gr1", source)] == list(LOOP)[1:]
