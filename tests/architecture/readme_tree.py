"""Renders the annotated tree of README.md from the first line of each file.

`python -m tests.architecture.readme_tree` prints it; `--write` puts it between the marks in README.md.
"""

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.tree import ROOT

BEGIN, END = "<!-- tree:begin -->", "<!-- tree:end -->"
FOLDERS = ("flows", "tasks", "data_lake", "model_core", "deployments", "benchmarks", "tests", "docs", "notebooks")
TOP_FILES = ("errors.py", "lookup.py", "vlaloop")
ONE_LINE = {
    "tests",
    "adr",
    "results",
    "golden",
    "envs",
    "profiles",
    "recipes",
}  # folders whose files are not listed one by one
SUFFIXES = {".py", ".md", ".yaml", ".ipynb", ".txt", ".sh", ".jinja", ".html", ""}
MEANT = {
    "deployments": "values only: schedules, profiles, environments",
    "docs": "how each stage works, words, decisions",
    "notebooks": "the loop from a notebook",
    "benchmarks": "one file per claim",
    "adr": "decisions and how we would know they were wrong",
    "results": "raw samples of measurements",
    "recipes": "what to build, as frozen values",
    "profiles": "where and on how many nodes",
    "envs": "lock files of environments made on demand",
    "golden": "plans, identities and the command line, pinned",
}
MAX_WORDS = 12


def phrase(text: str) -> str:
    """The first sentence of a docstring; a long one ends at a comma or colon within its first twelve words."""
    line = " ".join(text.strip().split("\n\n")[0].split())
    words = re.split(r"[.?!](?:\s|$)", line)[0].split()
    if len(words) > MAX_WORDS:
        pauses = [number for number, word in enumerate(words[:MAX_WORDS], 1) if word[-1] in ",:;" and number >= 4]
        words = words[: pauses[-1]] if pauses else [*words[: MAX_WORDS - 1], "…"]
    return " ".join(words).rstrip(",:;.")


def described(path: Path) -> str:
    """What a file says of itself in its first line."""
    if path.suffix == ".py":
        return phrase(ast.get_docstring(ast.parse(path.read_text())) or "")
    if path.suffix == ".ipynb":
        return ""
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#!")]
    first = lines[0] if lines else ""
    if path.suffix == ".md" or first.startswith("#"):
        return phrase(first.lstrip("# ").removeprefix(f"{path.name}: "))
    return ""


def meant(folder: Path) -> str:
    if folder.name in MEANT:
        return MEANT[folder.name]
    package = folder / "__init__.py"
    return described(package) if package.exists() else ""


def visible(folder: Path) -> list[Path]:
    """Files first, then folders, without caches, hidden names and empty folders."""
    kept = [path for path in folder.iterdir() if not path.name.startswith((".", "__"))]
    files = sorted(path for path in kept if path.is_file() and path.suffix in SUFFIXES)
    folders = sorted(path for path in kept if path.is_dir() and any(item.is_file() for item in path.rglob("*")))
    return files + [path for path in folders if path.name != "__pycache__"]


def lines_of(folder: Path, depth: int) -> Iterator[tuple[str, str]]:
    yield "  " * depth + folder.name + "/", meant(folder)
    if folder.name in ONE_LINE:
        return
    for path in visible(folder):
        if path.is_dir():
            yield from lines_of(path, depth + 1)
        else:
            yield "  " * (depth + 1) + path.name, described(path)


def render() -> str:
    """The tree as a fenced block, descriptions in one column."""
    lines = [line for name in FOLDERS if (ROOT / name).is_dir() for line in lines_of(ROOT / name, 0)]
    lines += [(name, described(ROOT / name)) for name in TOP_FILES]
    return "\n".join(["```", *(f"{name:<30} {text}".rstrip() for name, text in lines), "```"])


def between(text: str) -> str:
    return text.partition(BEGIN)[2].partition(END)[0].strip()


def main() -> None:
    parser = argparse.ArgumentParser(description="the annotated tree of README.md")
    parser.add_argument("--write", action="store_true", help="put it into README.md")
    if not parser.parse_args().write:
        print(render())
        return
    readme = ROOT / "README.md"
    text = readme.read_text()
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    readme.write_text(f"{before}{BEGIN}\n{render()}\n{END}{after}")


if __name__ == "__main__":
    main()
