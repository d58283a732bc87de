"""The typed form of changes to a recipe: every field of it, optional, with its type; what the UI shows."""

import dataclasses
import functools
import operator
import types
import typing
from typing import Any

import pydantic

from flows.recipe import LoopRecipe


@functools.cache
def _optional(spec: type) -> type[pydantic.BaseModel]:
    """A model with the fields of the dataclass `spec`, all optional, its sub-specs likewise. They go by their names in
    JSON; as attributes they end with an underscore, so that none is one of pydantic's own, such as `copy`."""
    hints = typing.get_type_hints(spec)
    fields: dict[str, Any] = {
        f"{each.name}_": (
            _loose(hints[each.name]) | None,
            pydantic.Field(default=None, alias=each.name, title=each.name.replace("_", " ")),
        )
        for each in dataclasses.fields(spec)
    }
    config = pydantic.ConfigDict(extra="forbid", serialize_by_alias=True)
    return pydantic.create_model(f"{spec.__name__}Changes", __config__=config, __doc__=spec.__doc__, **fields)


def _loose(hint: Any) -> Any:
    """`hint` with a spec (also where it may be None) replaced by its optional form."""
    if isinstance(hint, types.UnionType):
        kinds = [_loose(each) for each in typing.get_args(hint) if each is not type(None)]
        return functools.reduce(operator.or_, kinds) | None
    return _optional(hint) if dataclasses.is_dataclass(hint) else hint


RecipeChanges = _optional(LoopRecipe)


def assignments(changes: pydantic.BaseModel | None) -> dict[str, Any]:
    """The fields that were given, by dotted path: {"train.num_steps": 3000}. None is "as the recipe has it"."""
    return dict(_leaves(changes, "")) if changes is not None else {}


def _leaves(changes: pydantic.BaseModel, prefix: str) -> typing.Iterator[tuple[str, Any]]:
    for attribute, value in changes:
        name = attribute.removesuffix("_")
        if isinstance(value, pydantic.BaseModel):
            yield from _leaves(value, f"{prefix}{name}.")
        elif value is not None:
            yield f"{prefix}{name}", value
