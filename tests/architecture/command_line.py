"""The command line as a value: every command with its arguments and options.

`python -m tests.architecture.command_line --write` renews tests/golden/cli.json after a change on purpose.
"""

import argparse
import json
from typing import Any

import typer
import typer.core

from tests.architecture.tree import ROOT

GOLDEN = ROOT / "tests" / "golden" / "cli.json"


def describe(command: Any) -> dict[str, Any]:
    """Names, types and defaults; help texts may change freely."""
    described: dict[str, Any] = {"parameters": [parameter(item) for item in command.params if item.name != "help"]}
    if isinstance(command, typer.core.TyperGroup):
        described["commands"] = {name: describe(item) for name, item in sorted(command.commands.items())}
    return described


def parameter(item: Any) -> dict[str, Any]:
    kind = item.type_descriptor.annotation
    names = [*item.opts, *item.secondary_opts] if isinstance(item, typer.core.TyperOption) else [str(item.name)]
    return {
        "kind": item.param_type_name,
        "names": names,
        "type": kind.__name__ if isinstance(kind, type) else str(kind),
        "required": item.required,
        "repeated": bool(item.multiple if isinstance(item, typer.core.TyperOption) else item.nargs != 1),
    }


def command_line() -> dict[str, Any]:
    from flows.cli import app  # here, so that the other tests run without it

    return describe(typer.main.get_command(app))


def main() -> None:
    parser = argparse.ArgumentParser(description="the frozen command line")
    parser.add_argument("--write", action="store_true", help="renew tests/golden/cli.json")
    text = json.dumps(command_line(), indent=1) + "\n"
    if parser.parse_args().write:
        GOLDEN.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
