"""Every entry of every table of names can be had, and each table is where it is said to be."""

import ast
import importlib
import re

import pytest

from lookup import lookup
from tests.architecture.tree import parse, source_files

# table -> a test of the folder named here enrols each of its entries
TABLES = {"SOURCES", "POLICIES", "ATTENTION", "SIMULATORS", "LAUNCHERS", "EMBODIMENTS"}
DOTTED = re.compile(r"[a-z_][\w.]*:[A-Za-z_]\w*")


def tables() -> dict[str, str]:
    """table -> the module that defines it at its top level."""
    found: dict[str, str] = {}
    for path in source_files():
        for node in parse(path).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
            for target in targets:
                if isinstance(target, ast.Name) and target.id in TABLES:
                    module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
                    assert target.id not in found, f"{target.id} in {module} and in {found[target.id]}"
                    found[target.id] = module
    return found


@pytest.mark.parametrize("table", sorted(TABLES))
def test_every_name_resolves(table: str) -> None:
    """Also the entries whose library is optional: they import it when they are used, not when they are named."""
    entries = getattr(importlib.import_module(tables()[table]), table)
    assert entries
    for name, target in entries.items():
        assert DOTTED.fullmatch(target), f"{table}[{name!r}] = {target!r} is not package.module:Name"
        assert lookup(entries, name, table.lower()) is not None
