"""Names to objects: known names, dotted names, and the closest known one for a typing error."""

import json
import sys

import pytest

from errors import UserError
from lookup import lookup

TABLE = {"loads": "json:loads", "absent": "no_such_library:Thing", "tabnanny": "tabnanny:check"}


def test_known_name() -> None:
    assert lookup(TABLE, "loads", "function") is json.loads


def test_dotted_name_needs_no_entry() -> None:
    assert lookup({}, "json:dumps", "function") is json.dumps


def test_nothing_is_imported_before_it_is_used() -> None:
    sys.modules.pop("tabnanny", None)
    lookup(TABLE, "loads", "function")
    assert "tabnanny" not in sys.modules
    lookup(TABLE, "tabnanny", "function")
    assert "tabnanny" in sys.modules


def test_typing_error_gets_the_closest_name() -> None:
    with pytest.raises(
        UserError, match=r"NAME-001: unknown function 'load'\n  next: did you mean 'loads'\?; one of your own: package"
    ):
        lookup(TABLE, "load", "function")


def test_strange_name_gets_the_known_ones() -> None:
    with pytest.raises(
        UserError, match="known: absent, loads, tabnanny; one of your own: package.module:NAME, on PYTHONPATH"
    ):
        lookup(TABLE, "zzz", "function")


def test_missing_library_is_named() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        lookup(TABLE, "absent", "function")
