"""Names to objects: a registry is a dict of `package.module:Name` strings, imported only when used."""

import pkgutil
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from errors import UserError

OWN = "package.module:NAME, on PYTHONPATH"


def lookup(table: Mapping[str, str], name: str, kind: str) -> Any:
    """The object that `name` stands for in `table`, or that a dotted `package.module:Name` names itself.

    Raises `UserError` NAME-001 for a name that is neither, with the closest known one,
    NAME-002 for a dotted one that cannot be imported.
    """
    if name not in table and ":" not in name:
        near = get_close_matches(name, table, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(table))}"
        raise UserError("NAME-001", f"unknown {kind} {name!r}", next_step=f"{hint}; one of your own: {OWN}")
    try:
        return pkgutil.resolve_name(table.get(name, name))
    except (ImportError, AttributeError, ValueError) as error:
        if name in table:
            raise  # ours, or a library of it that is not there: it says so itself
        raise UserError("NAME-002", f"{kind} {name!r} cannot be imported: {error}", next_step=OWN) from error
