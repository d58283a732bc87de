"""Small JSON files that end with a digest of what they say, so that a changed byte is named and not believed.

Files from before there was one are believed as far as they are whole and of their form.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_type_hints

from blake3 import blake3

from data_lake.files import LakePath, read_json
from errors import UserError

Kind = TypeVar("Kind")
CHANGED = "a small file does not say what was written"
NOT_OF_ITS_FORM = (AttributeError, KeyError, TypeError, ValueError)


def digest_of(fields: Mapping[str, Any]) -> str:
    """BLAKE3 of the fields, in whatever order and spacing they stand."""
    return blake3(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def sealed(fields: Mapping[str, Any]) -> bytes:
    """The file of these fields."""
    said = json.loads(json.dumps(fields))  # as they will be read
    return json.dumps({**said, "digest": digest_of(said)}, indent=1).encode()


def unsealed(path: LakePath, make: Callable[[dict[str, Any]], Kind], *, remedy: str) -> Kind:
    """What `make` makes of the fields that were written. Raises UserError LAKE-080 for a torn file, LAKE-242 for one
    that says something else than was written, or not what `make` needs; either names the file and `remedy`."""
    found = read_json(path, remedy=remedy)
    try:
        digest = found.pop("digest", None)
        if digest is None or digest == digest_of(found):
            return make(found)
        what = "its digest is of something else"
    except NOT_OF_ITS_FORM as error:
        what = f"it is not of its form ({type(error).__name__}: {error})"
    raise UserError("LAKE-242", f"{CHANGED}: {what}", where=str(path), next_step=remedy)


def fields_of(content: bytes) -> dict[str, Any] | None:
    """The fields that were written, None where `content` does not say them."""
    try:
        found = json.loads(content)
        digest = found.pop("digest", None)
    except NOT_OF_ITS_FORM:
        return None
    return found if digest is None or digest == digest_of(found) else None


def of_kind(kind: type[Kind], fields: Mapping[str, Any]) -> Kind:
    """The dataclass of these fields. Raises TypeError for one that lacks, or is of another type."""
    made = kind(**fields)
    for name, wanted in get_type_hints(kind).items():
        if name in fields and not isinstance(fields[name], wanted):
            raise TypeError(f"{name} is {fields[name]!r}")
    return made


def numbered(folder: LakePath, digits: int = 6) -> dict[int, LakePath]:
    """000001.json, … in `folder`, by their numbers in order. Whatever else lies there is not ours."""
    paths = [path for path in folder.glob("*.json") if path.stem.isascii() and path.stem.isdecimal()]
    found = {int(path.stem): path for path in paths if path.stem == f"{int(path.stem):0{digits}d}"}
    return dict(sorted(found.items()))
