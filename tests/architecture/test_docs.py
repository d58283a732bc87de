"""Documents tell of the project as it is: nothing of one machine, no dead link, no stale tree."""

import re
from pathlib import Path

import pytest

from tests.architecture.readme_tree import BEGIN, END, between, phrase, render
from tests.architecture.tree import ROOT

SKIPPED = {".git", ".venv", ".vlaloop", "lake", "__pycache__", ".hypothesis", ".pytest_cache", ".ruff_cache"}
SUFFIXES = {".md", ".py", ".toml", ".yaml", ".yml", ".txt", ".ipynb", ".sh", ".html", ".json", ".cfg", ""}
# spelled in pieces, or this file would find itself
MACHINE_PATHS = re.compile(
    "(?<![A-Za-z0-9_.<])/(?:" + "|".join(["ro" + "ot", "wo" + "rk", "ho" + "me/[a-z]"]) + ")(?:/|\\b)"
)
INDEX_HOSTS = re.compile(
    "|".join(["py" + "pi\\.org", "python" + "hosted", "download\\.py" + "torch", "registry\\.np" + "mjs"])
)


def documents() -> list[Path]:
    """Every text of the checkout that people or machines read."""
    found = (path for path in ROOT.rglob("*") if not set(path.relative_to(ROOT).parts) & SKIPPED)
    return sorted(
        path for path in found if path.is_file() and path.suffix in SUFFIXES and path.stat().st_size < 500_000
    )


@pytest.mark.parametrize(
    ("what", "pattern"), [("path of one machine", MACHINE_PATHS), ("host of a package index", INDEX_HOSTS)]
)
def test_nothing_of_one_machine(what: str, pattern: re.Pattern[str]) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number} {match[0]}"
        for path in documents()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if (match := pattern.search(line))
    ]
    assert not found, f"{what}:\n" + "\n".join(found[:40])


def test_links_between_documents_lead_somewhere() -> None:
    dead = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in documents()
        if path.suffix == ".md"
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", path.read_text())
        if not (path.parent / target).exists()
    ]
    assert not dead, dead


def test_readme_tree_is_fresh() -> None:
    """`python -m tests.architecture.readme_tree --write` brings it up to date."""
    readme = (ROOT / "README.md").read_text()
    assert readme.count(BEGIN) == readme.count(END) == 1, "README.md has no marks for the tree"
    assert between(readme) == render()


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("Gate: may a policy become champion? A pure function.", "Gate: may a policy become champion"),
        ("Jobs of several ranks.", "Jobs of several ranks"),
        (
            "Rows of a fixed budget, filled by patterns, without one materialised epoch of their samples.",
            "Rows of a fixed budget, filled by patterns",
        ),
        ("1 2 3 4 5 6 7 8 9 10 11 12 13", "1 2 3 4 5 6 7 8 9 10 11 …"),
    ],
)
def test_phrase(docstring: str, expected: str) -> None:
    assert phrase(docstring) == expected
