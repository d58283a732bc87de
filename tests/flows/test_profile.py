"""Profiles say where, never what: strict in names and kinds."""

from dataclasses import fields
from pathlib import Path

import pytest

from errors import UserError
from flows.places import places
from flows.profile import SETTABLE, load_profile, profiles
from flows.recipe import LoopRecipe

HERE = places("lake", "home")


@pytest.mark.parametrize("name", profiles())
def test_every_profile_loads(name: str) -> None:
    runtime = load_profile(name, HERE, run_id="r", label="l")
    assert (runtime.lake, runtime.home, runtime.run_id, runtime.label) == (HERE.lake, HERE.home, "r", "l")
    assert runtime.workers > 0


def test_laptop_is_the_default_of_two_cores() -> None:
    runtime = load_profile("laptop", HERE, run_id="r")
    assert (runtime.workers, runtime.threads, runtime.launcher, runtime.lease_s) == (2, 2, "local", 30)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("learning_rate: 0.1", "PROFILE-002"),
        ("worker: 2", "PROFILE-002"),
        ("lake: /elsewhere", "PROFILE-002"),
        ("- workers", "PROFILE-002"),
        ("workers: two", "PROFILE-003"),
        ("workers: true", "PROFILE-003"),
        ("workers: -1", "PROFILE-003"),
        ("launcher: 3", "PROFILE-003"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, code: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as refused:
        load_profile(str(path), HERE, run_id="r")
    assert refused.value.code == code


def test_unknown_profile_suggests_a_close_one() -> None:
    with pytest.raises(UserError, match="laptop"):
        load_profile("labtop", HERE, run_id="r")


def test_a_profile_never_names_what_a_recipe_names() -> None:
    assert not set(SETTABLE) & {field.name for field in fields(LoopRecipe)}
