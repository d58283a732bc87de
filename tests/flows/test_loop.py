"""The loop calls every stage of the catalogue once, in order, and feeds each what it declares."""

import inspect
import pkgutil
from collections.abc import Sequence
from typing import Any

import pytest

from data_lake.refs import Ref
from errors import UserError
from flows.loop import closed_loop, up_to
from flows.recipe import load, resolve
from tasks.build import Stage
from tasks.catalogue import LOOP

MIXED = [
    'mixture.others=[{"name": "b", "weight": 0.5, "ingest": {"dataset": "b", "source": "/b", "embodiment": "gr1"}}]'
]


def walked(
    recipe: str,
    source: Ref | None,
    others: Sequence[Ref] = (),
    changes: Sequence[str] = (),
    until: str | None = None,
) -> list[tuple[str, int]]:
    seen: list[tuple[str, int]] = []

    def call(stage: Stage, spec: Any, *refs: Ref) -> Ref:
        parameters = inspect.signature(pkgutil.resolve_name(stage.fn)).parameters.values()
        positional = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
        is_any = any(each.kind is each.VAR_POSITIONAL for each in parameters)
        assert is_any or len(positional) == 1 + len(refs), stage.name
        seen.append((stage.title, len(refs)))
        return Ref(uri=stage.name, fingerprint=stage.name)

    loop = resolve(load(recipe, changes))
    assert closed_loop(loop, source, up_to(until, loop, call), others).uri == (until or "register")
    return seen


def test_every_stage_once_in_order() -> None:
    assert [name for name, _ in walked("tiny", None)] == list(LOOP)


def test_a_recipe_without_collect_begins_with_its_source() -> None:
    source = Ref(uri="s", fingerprint="s")
    assert [name for name, _ in walked("gr1", source)] == list(LOOP)[1:]


def test_further_data_sets_go_their_own_way_until_they_are_mixed() -> None:
    source = Ref(uri="s", fingerprint="s")
    found = walked("gr1", source, [source], MIXED)
    assert found[:5] == [("ingest", 1), ("preprocess", 1), ("ingest:b", 1), ("preprocess:b", 1), ("mix", 2)]
    assert [name for name, _ in found[5:]] == list(LOOP)[3:]


@pytest.mark.parametrize("last", LOOP)
def test_a_loop_that_stops_early_is_the_beginning_of_the_whole(last: str) -> None:
    assert walked("tiny", None, until=last) == walked("tiny", None)[: LOOP.index(last) + 1]


@pytest.mark.parametrize(
    ("last", "stages"),
    [
        ("ingest", ["ingest", "ingest:b"]),
        ("preprocess", ["ingest", "preprocess", "ingest:b", "preprocess:b"]),
        ("mix", ["ingest", "preprocess", "ingest:b", "preprocess:b", "mix"]),
    ],
)
def test_all_data_sets_of_a_mixture_come_as_far(last: str, stages: list[str]) -> None:
    source = Ref(uri="s", fingerprint="s")
    assert [name for name, _ in walked("gr1", source, [source], MIXED, until=last)] == stages


@pytest.mark.parametrize("last", ["trian", "collect", "mix", "ingest:b"])
def test_a_loop_ends_with_a_stage_that_it_has(last: str) -> None:
    with pytest.raises(UserError, match=f"(?s)CLI-003: no stage '{last}'.*known: ingest, preprocess, pack, train"):
        walked("gr1", Ref(uri="s", fingerprint="s"), until=last)
