"""Sizes, names and documentation of modules, functions and classes."""

import ast
import re

import pytest

from tests.architecture.tree import ROOT, Definition, all_files, definitions, dotted, parse, source_files

MAX_FUNCTION_LINES = 50
MAX_FILE_LINES = 300
HARD_FILE_LINES = 400
LONGER_ON_PURPOSE: dict[str, str] = {}  # file over 300 lines -> why it is better whole

BANNED = {"manager", "helper", "helpers", "util", "utils", "handler", "base", "common", "wrapper", "process", "do"}
BANNED_ALONE = {"data", "info"}
OTHERS_NAMES = {"do_GET", "do_POST", "do_HEAD"}  # methods that http.server calls by these names

# (file, function): an edge where whatever happens must be caught, or an object is probed
BROAD_EXCEPT: set[tuple[str, str]] = {
    ("flows/cli.py", "main"),  # whatever went wrong becomes one paragraph and an exit status; --debug raises
    ("tasks/stage.py", "_is_transient"),  # Prefect hands over a state; its error may be of any kind
    ("tasks/stage.py", "listen"),  # what shows a build never stops it, whatever Prefect and its libraries raise
    ("tasks/workers/train_worker.py", "main"),  # the end of a process: whatever happened goes into its result file
}
PROBES: set[tuple[str, str]] = set()


def words(name: str) -> list[str]:
    """`readHTTPBase_of` -> read, http, base, of."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def test_functions_are_short() -> None:
    long = [
        f"{path}:{node.lineno} {node.name} has {lines} lines"
        for path in all_files()
        for node in definitions(path)
        if not isinstance(node, ast.ClassDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > MAX_FUNCTION_LINES
    ]
    assert not long, "\n".join(long)


def test_files_are_short() -> None:
    lengths = {path.as_posix(): len((ROOT / path).read_text().splitlines()) for path in all_files()}
    over = {name: lines for name, lines in lengths.items() if lines > MAX_FILE_LINES}
    assert {name for name, lines in over.items() if lines > HARD_FILE_LINES} == set()
    assert set(over) == set(LONGER_ON_PURPOSE), f"over {MAX_FILE_LINES} lines, and listed: {over}, {LONGER_ON_PURPOSE}"


def test_modules_say_what_they_do() -> None:
    """One to five lines of docstring in every module."""
    wrong = []
    for path in all_files():
        docstring = ast.get_docstring(parse(path))
        lines = 0 if docstring is None else len(docstring.splitlines())
        if not 1 <= lines <= 5:
            wrong.append(f"{path}: {lines} lines")
    assert not wrong, "\n".join(wrong)


def test_names_say_what_a_thing_is() -> None:
    """No banned word in the name of a module, class or function; `data` and `info` never alone."""
    named = [(path.stem, f"{path}") for path in source_files()]
    named += [(node.name, f"{path}:{node.lineno}") for path in source_files() for node in definitions(path)]
    wrong = [
        f"{where} {name}"
        for name, where in named
        if name not in OTHERS_NAMES
        and not name.startswith("__")
        and (set(words(name)) & BANNED or name.strip("_").lower() in BANNED_ALONE)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("name", "parts"), [("PIDBase", ["pid", "base"]), ("preprocess", ["preprocess"]), ("to_do", ["to", "do"])]
)
def test_words_of_a_name(name: str, parts: list[str]) -> None:
    assert words(name) == parts


def dataclass_options(node: ast.ClassDef) -> dict[str, bool] | None:
    """The keyword options of a dataclass decorator, None for a class that is none."""
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        if dotted(call.func if call else decorator).split(".")[-1] == "dataclass":
            keywords = call.keywords if call else []
            return {
                word.arg or "": isinstance(word.value, ast.Constant) and word.value.value is True for word in keywords
            }
    return None


def test_values_are_frozen() -> None:
    """Specs and refs: frozen, slotted, keyword-only."""
    wrong = []
    found = 0
    for path in source_files():
        if path.name not in ("specs.py", "refs.py"):
            continue
        for node in definitions(path):
            options = dataclass_options(node) if isinstance(node, ast.ClassDef) else None
            if options is None:
                continue
            found += 1
            if not all(options.get(name) for name in ("frozen", "slots", "kw_only")):
                wrong.append(f"{path}:{node.lineno} {node.name}")
    assert found > 20
    assert not wrong, wrong


def enclosing(path_functions: list[Definition], line: int) -> str:
    """The innermost definition around a line."""
    around = [node for node in path_functions if node.lineno <= line <= (node.end_lineno or 0)]
    return max(around, key=lambda node: node.lineno).name if around else ""


def test_broad_except_only_at_the_edges() -> None:
    """What catches everything must raise it again, or be listed."""
    found = set()
    for path in source_files():
        inner = list(definitions(path))
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[-1], ast.Raise):
                caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type] if node.type else []
                if not caught or {dotted(kind) for kind in caught} & {"Exception", "BaseException"}:
                    found.add((path.as_posix(), enclosing(inner, node.lineno)))
    assert found == BROAD_EXCEPT, f"not listed: {found - BROAD_EXCEPT}; listed and gone: {BROAD_EXCEPT - found}"


def test_objects_are_not_probed() -> None:
    """hasattr, and getattr with a default, hide what a thing is."""
    found = set()
    for path in source_files():
        inner = list(definitions(path))
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.Call):
                name = dotted(node.func)
                if name == "hasattr" or (name == "getattr" and len(node.args) == 3):
                    found.add((path.as_posix(), enclosing(inner, node.lineno)))
    assert found == PROBES, f"not listed: {found - PROBES}; listed and gone: {PROBES - found}"
