"""Nothing in the code runs what it reads: no pickle, no eval, no loader that executes, no open port by default."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import all_files, dotted, imports, parse, source_files

EXECUTING_MODULES = {"pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "jsonpickle"}
EXECUTING_CALLS = {
    "eval": "runs its text",
    "exec": "runs its text",
    "compile": "prepares text to be run",
    "torch.load": "unpickles; safetensors holds tensors",
    "torch.save": "pickles; safetensors holds tensors",
    "yaml.load": "builds objects; yaml.safe_load does not",
    "yaml.unsafe_load": "builds objects",
    "yaml.full_load": "builds objects",
    "os.system": "goes through a shell",
    "os.popen": "goes through a shell",
}


def bad_calls(module: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, reason) of each call that may run what it reads."""
    for node in ast.walk(module):
        if not isinstance(node, ast.Call):
            continue
        name = dotted(node.func)
        if name in EXECUTING_CALLS:
            yield node.lineno, f"{name} {EXECUTING_CALLS[name]}"
        for keyword in node.keywords:
            given = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            if (keyword.arg, given) in {("allow_pickle", True), ("shell", True), ("weights_only", False)}:
                yield node.lineno, f"{name} with {keyword.arg}={given}"
            if keyword.arg == "yaml_loader" or (keyword.arg == "Loader" and "Safe" not in dotted(keyword.value)):
                yield node.lineno, f"{name} with an unsafe loader"


def test_no_module_that_executes_files_is_imported() -> None:
    strays = [
        f"{path}:{line} {module}"
        for path in source_files()  # a test may pickle, to show that a value goes to another process
        for module, line in imports(path)
        if module.split(".")[0] in EXECUTING_MODULES
    ]
    assert not strays, strays


def test_nothing_read_is_executed() -> None:
    strays = [f"{path}:{line} {reason}" for path in all_files() for line, reason in bad_calls(parse(path))]
    assert not strays, "\n".join(strays)


@pytest.mark.parametrize(
    ("text", "num_bad"),
    [
        ("eval('1')", 1),
        ("torch.load(file)", 1),
        ("np.load(file, allow_pickle=True)", 1),
        ("np.load(file, allow_pickle=False)", 0),
        ("yaml.load(text, Loader=yaml.Loader)", 2),
        ("yaml.safe_load(text)", 0),
        ("subprocess.run('ls', shell=True)", 1),
        ("model.eval()", 0),
        ("re.compile('a')", 0),
    ],
)
def test_what_counts_as_executing(text: str, num_bad: int) -> None:
    assert len(list(bad_calls(ast.parse(text)))) == num_bad


def test_servers_listen_on_loopback() -> None:
    """No address that means every interface is written down anywhere in the code."""
    strays = [
        f"{path}:{node.lineno}"
        for path in source_files()
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Constant) and node.value in ("0.0.0.0", "::")
    ]
    assert not strays, strays


def test_modules_do_nothing_when_imported() -> None:
    """At module level stand definitions, constants, imports and their guards: no loops, no file, no environment."""
    strays: list[str] = []
    for path in source_files():
        strays += [f"{path}:{node.lineno}" for node in parse(path).body if acts(node, path)]
    assert not strays, strays


def acts(node: ast.stmt, path: Path) -> bool:
    """Whether a statement at module level does more than define something."""
    if isinstance(node, ast.For | ast.While | ast.With | ast.Try | ast.Delete):
        return True
    if isinstance(node, ast.Expr):  # docstrings, and the registration of commands: `app.command()(run)`
        called = dotted(node.value.func) if isinstance(node.value, ast.Call) else ""
        return isinstance(node.value, ast.Call) and not called.startswith("app.") and path.name != "cli.py"
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return "environ" in dotted(node.targets[0].value)
    return False
