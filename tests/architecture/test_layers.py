"""Who may import whom, and which library may be touched where."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, imports, source_files

# library -> where an import of it may stand: folders end with a slash
ALLOWED = {
    "prefect": ("flows/", "tasks/stage.py", "benchmarks/"),
    "mlflow": ("tasks/registry.py", "tasks/metrics.py", "benchmarks/"),
    "lance": ("data_lake/", "tasks/", "benchmarks/"),
    "daft": ("data_lake/", "benchmarks/"),
    "torch": ("model_core/", "tasks/", "data_lake/decode.py", "benchmarks/"),
    "pydantic": ("flows/",),
    "mujoco": ("model_core/sim/", "benchmarks/"),
    "metaworld": ("model_core/sim/", "benchmarks/"),
    "typer": ("flows/",),
    "rich": ("flows/",),
}


def test_import_contracts_are_kept() -> None:
    """The contracts of pyproject.toml: flows > tasks > {data_lake | model_core}, indirect imports included."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", "--no-cache"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]
    assert " 0 broken" in ended.stdout


@pytest.mark.parametrize("library", sorted(ALLOWED))
def test_library_is_imported_only_where_it_belongs(library: str) -> None:
    strays = [
        f"{path}:{line}"
        for path in source_files()
        for module, line in imports(path)
        if module.split(".")[0] == library and not path.as_posix().startswith(ALLOWED[library])
    ]
    assert not strays, f"{library} is imported at {', '.join(strays)}; it may be in {', '.join(ALLOWED[library])}"


def test_values_import_the_standard_library_only() -> None:
    """A recipe validates without torch. What a function imports when it is called does not count."""
    values = [path for path in source_files() if path.name in ("specs.py", "refs.py", "errors.py", "lookup.py")]
    own = {path.with_suffix("").as_posix().replace("/", ".") for path in values} | {"data_lake", "model_core", "tasks"}
    strays = [
        f"{path}:{line} {module}"
        for path in values
        for module, line in imports(path, at_once=True)
        if module.split(".")[0] not in sys.stdlib_module_names and module not in own
    ]
    assert not strays, strays


def test_imports_are_absolute_and_named() -> None:
    relative = [f"{path}:{line}" for path in source_files() for module, line in imports(path) if module.startswith(".")]
    assert not relative, relative


def test_top_folders_hold_no_stray_modules() -> None:
    """Folders are the import packages; a new module at the top is a decision."""
    assert {path.name for path in Path(ROOT).glob("*.py")} == {"errors.py", "lookup.py"}
