"""The typed form of changes: every field of a recipe, optional; what was given comes out by dotted path."""

import pydantic
import pytest

from data_lake.specs import IngestSpec
from flows.changes import RecipeChanges, _leaves, _optional, assignments
from flows.recipe import changed, load


def test_given_fields_come_out_by_path() -> None:
    given = {
        "train": {"num_steps": 3},
        "evaluate": {"scene": {"max_steps": 5}},
        "preprocess": {"heldout_episodes": [1]},
    }
    paths = assignments(RecipeChanges.model_validate(given))
    assert paths == {"train.num_steps": 3, "evaluate.scene.max_steps": 5, "preprocess.heldout_episodes": (1,)}
    assert changed(load("tiny"), paths).train.num_steps == 3
    assert assignments(None) == {} and assignments(RecipeChanges()) == {}


def test_a_round_trip_through_json_keeps_what_was_given() -> None:
    """Prefect stores parameters with every absent field as None."""
    form = RecipeChanges.model_validate({"train": {"seed": 1}})
    assert assignments(RecipeChanges.model_validate_json(form.model_dump_json())) == {"train.seed": 1}


@pytest.mark.parametrize("bad", [{"trian": {}}, {"train": {"num_stepz": 1}}, {"train": {"num_steps": "many"}}])
def test_what_does_not_fit_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(pydantic.ValidationError):
        RecipeChanges.model_validate(bad)


def test_fields_with_names_that_pydantic_uses_itself_are_fields_like_any(recwarn: pytest.WarningsRecorder) -> None:
    form = _optional.__wrapped__(IngestSpec).model_validate({"copy": "reference"})
    assert form.model_dump(exclude_none=True) == {"copy": "reference"} and dict(_leaves(form, "")) == {
        "copy": "reference"
    }
    assert "copy" in form.model_json_schema()["properties"] and not recwarn.list


def test_the_form_shows_types() -> None:
    schema = RecipeChanges.model_json_schema()
    vision = schema["$defs"]["PolicySpecChanges"]["properties"]["vision"]
    assert vision["anyOf"][0]["enum"] == ["conv", "siglip"]
