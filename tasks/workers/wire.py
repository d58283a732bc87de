"""Specs over the wire: the dataclass that JSON was made of, and the loop that a worker's process runs."""

import dataclasses
import json
import os
import sys
import types
from collections.abc import Callable
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from errors import UserError

Work = Callable[[dict[str, Any]], dict[str, Any]]


def spec_from_json(kind: Any, value: Any) -> Any:
    """The inverse of `dataclasses.asdict` after a trip through JSON, for frozen specs of specs, tuples and scalars."""
    if value is None:
        return value
    if dataclasses.is_dataclass(kind):
        hints, make = get_type_hints(kind), cast("Any", kind)
        return make(**{name: spec_from_json(hints[name], item) for name, item in value.items()})
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return spec_from_json(next(each for each in inner if each is not type(None)), value)
    if origin is tuple:
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(spec_from_json(each, item) for each, item in zip(kinds, value, strict=True))
    return value


def serve(begin: Callable[[dict[str, Any]], Work]) -> None:
    """Answer one line of JSON per unit of work until standard input ends, which it also does when the parent dies.

    The first line holds the settings. What libraries print goes to standard error. A UserError travels back
    as such; any other exception ends this process with its traceback.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    work: Work | None = None
    for line in sys.stdin:
        message = json.loads(line)
        try:
            if work is None:
                work = begin(message)
                continue
            answer = {"result": work(message)}
        except UserError as error:
            answer = {"user_error": [error.code, error.message, error.where, error.done, error.next_step]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
