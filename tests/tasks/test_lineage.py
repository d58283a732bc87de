"""Lineage: everything that a ref was made of, once, and the recipe that it adds up to."""

from pathlib import Path
from typing import Any

import pytest

from flows.recipe import load
from tasks.lineage import Record, lineage, recipe_of, upstream
from tests.tasks import fabricated


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Record]]:
    """A lake with one whole run, and its records."""
    root = tmp_path_factory.mktemp("run")
    runtime, ref = fabricated.run(root / "lake", root / "home", "tiny")
    return runtime.lake, lineage(runtime.lake, [ref])


def test_lineage_is_the_loop_in_order(tiny: tuple[Path, dict[str, Record]]) -> None:
    _, chain = tiny
    assert list(chain) == ["collect", "ingest", "preprocess", "pack", "train", "export", "evaluate", "register"]
    settings = recipe_of(chain)
    assert (settings["train"]["num_steps"], settings["name"]) == (load("tiny").train.num_steps, "tiny")
    assert (
        settings["policy"]["action_horizon"] == load("tiny").policy.action_horizon
    )  # preprocess knows only a part of `policy`


def record(stage: str, fingerprint: str, *inputs: str, **spec: Any) -> Record:
    return {"stage": stage, "ref": {"fingerprint": fingerprint}, "identity": {"inputs": list(inputs), "spec": spec}}


def test_a_stage_that_two_others_share_comes_once_and_first() -> None:
    known = {"a": record("pre", "a", "source"), "b": record("pack", "b", "a"), "c": record("train", "c", "a", "b")}
    assert list(upstream(known, ["c"])) == ["pre", "pack", "train"]
    assert list(upstream(known, ["b"])) == ["pre", "pack"]
    assert upstream(known, ["source"]) == {}


def test_sections_merge_and_later_stages_know_more() -> None:
    chain = {"pre": record("pre", "a", policy={"inputs": 1}), "pack": record("pack", "b", policy={"inputs": 1, "h": 8})}
    assert recipe_of(chain) == {"policy": {"inputs": 1, "h": 8}}


def test_components_of_a_mixture_keep_apart() -> None:
    """The first has the names of its stages; of the others nothing overrides the recipe."""
    records = {
        "a": record("ingest", "a", ingest={"embodiment": "arm"}),
        "b": {**record("ingest", "b", ingest={"embodiment": "cart"}), "fingerprint": "0123456789"},
        "m": record("mix", "m", "a", "b"),
    }
    chain = upstream(records, ["m"])
    assert list(chain) == ["ingest", "ingest/01234567", "mix"]
    settings = recipe_of(chain)
    assert settings["ingest"] == {"embodiment": "arm"}
    assert settings["ingest/01234567"] == {"ingest": {"embodiment": "cart"}}
