"""The digest of the code that a stage runs: its module and what that imports, comments and layout aside."""

import ast
import functools
import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("data_lake", "model_core", "tasks", "errors", "lookup")
MODULE = re.compile(r"\w+(\.\w+)+(:\w+)?")


@functools.cache
def code_digest(module: str) -> str:
    """Hex digest over the syntax trees of `module` and of every project module that it imports.

    Docstrings do not count. What is looked up or started at run time (registries, workers) is followed as far
    as it stands in the code as a string: `package.module:Name` or `package.module`.
    """
    seen: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = _source(name)
        if name in seen or path is None:
            continue
        tree = _without_docstrings(ast.parse(path.read_text()))
        seen[name] = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
        waiting.extend(_imported(tree))
    return hashlib.sha256("\n".join(f"{name} {seen[name]}" for name in sorted(seen)).encode()).hexdigest()[:16]


def _source(module: str) -> Path | None:
    if module.partition(".")[0] not in PACKAGES:
        return None
    path = ROOT / Path(*module.split("."))
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((candidate for candidate in candidates if candidate.exists()), None)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:]
    return tree


def _imported(tree: ast.Module) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and MODULE.fullmatch(node.value):
            found.append(node.value.partition(":")[0])
    return found
