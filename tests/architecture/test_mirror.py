"""Tests stand where one looks for them: `data_lake/packing.py` has `tests/data_lake/test_packing.py`."""

from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, source_files

# values without behaviour, and what other tests run from end to end
EXCUSED = {
    "data_lake/refs.py": "values; tests/data_lake/test_identity.py pins their form",
    "data_lake/codes.py": "values; tests/data_lake/test_findings.py",
    "data_lake/refusals.py": "values; tests/data_lake/test_findings.py",
    "data_lake/specs.py": "values; tests/flows/test_recipe.py parses each",
    "model_core/specs.py": "values; tests/flows/test_recipe.py parses each",
    "flows/cli_data.py": "names and options; tests/flows/test_cli.py, test_commands.py and the golden command line",
    "flows/cli_views.py": "names and options; tests/flows/test_views.py and the golden command line",
    "flows/cli_edit.py": "names and options; tests/flows/test_edit_commands.py and the golden command line",
    "flows/options.py": "values; the golden command line",
    "tasks/specs.py": "values; tests/flows/test_recipe.py parses each",
    "model_core/types.py": "names of shapes",
}
EXCUSED_FOLDERS = ("flows/recipes/", "benchmarks/")  # values with golden plans; each benchmark is its own check


def homes(path: Path) -> list[Path]:
    """Where the tests of a module may be: in its mirror, or in one file for its whole sub-package."""
    mirror = Path("tests", *path.parent.parts, f"test_{path.stem}.py")
    whole = Path("tests", *path.parent.parent.parts, f"test_{path.parent.name}.py")
    return [mirror, whole, mirror.with_name(f"test_{path.parent.name}.py")] if len(path.parts) > 2 else [mirror]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("data_lake/packing.py", ["tests/data_lake/test_packing.py"]),
        (
            "model_core/sim/world.py",
            ["tests/model_core/sim/test_world.py", "tests/model_core/test_sim.py", "tests/model_core/sim/test_sim.py"],
        ),
        ("errors.py", ["tests/test_errors.py"]),
    ],
)
def test_homes(path: str, expected: list[str]) -> None:
    assert [home.as_posix() for home in homes(Path(path))] == expected


def test_every_module_has_its_tests() -> None:
    missing = [
        f"{path} -> {homes(path)[0]}"
        for path in source_files()
        if path.name != "__init__.py"
        and path.as_posix() not in EXCUSED
        and not path.as_posix().startswith(EXCUSED_FOLDERS)
        and not any((ROOT / home).exists() for home in homes(path))
    ]
    assert not missing, "\n".join(missing)


def test_excuses_are_needed() -> None:
    stale = [
        name for name in EXCUSED if not (ROOT / name).exists() or any((ROOT / h).exists() for h in homes(Path(name)))
    ]
    assert not stale, stale
