"""The project's files as the architecture tests see them: Python files, their syntax trees and definitions."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("flows", "tasks", "data_lake", "model_core", "benchmarks")
TOP_MODULES = ("errors.py", "lookup.py")
IGNORED = {"__pycache__", "lake", "results", "node_modules"}

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@cache
def source_files() -> tuple[Path, ...]:
    """Every Python file of the application, relative to the checkout, tests left out."""
    return tuple(sorted([*map(Path, TOP_MODULES), *(path for name in PACKAGES for path in below(name))]))


@cache
def all_files() -> tuple[Path, ...]:
    """The application's files and those of its tests."""
    return tuple(sorted([*source_files(), *below("tests")]))


def below(folder: str) -> list[Path]:
    found = (path.relative_to(ROOT) for path in (ROOT / folder).rglob("*.py"))
    return [path for path in found if not set(path.parts) & IGNORED]


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=str(path))


def definitions(path: Path) -> Iterator[Definition]:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node


def imports(path: Path, *, at_once: bool = False) -> Iterator[tuple[str, int]]:
    """(dotted module, line) of every import in the file; `at_once`: of those that run with the module itself."""
    module = parse(path)
    for node in module.body if at_once else ast.walk(module):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ".", node.lineno


def dotted(node: ast.expr) -> str:
    """`a.b.c` for a chain of names, else an empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (owner := dotted(node.value)):
        return f"{owner}.{node.attr}"
    return ""
