"""The command line, where data sets of the lake are changed: names, options and help texts."""

from pathlib import Path
from typing import Annotated

import typer

from flows.options import AsJson, Dataset, Debug, Home, Lake, Quiet
from flows.places import places
from flows.screen import Screen

app = typer.Typer()
Edited = Annotated[str, typer.Argument(help="NAME of a data set of the lake.")]


@app.command()
def relabel(
    dataset: Edited,
    episode: Annotated[
        list[str] | None, typer.Option("--episode", help="3 or 1-5,7 by the lake's numbers, SOURCE:30 by the source's.")
    ] = None,
    instruction: Annotated[str, typer.Option("--instruction", help="What these episodes do.")] = "",
    labels: Annotated[
        Path | None, typer.Option("--from", help="Many: JSON lines, or a .csv, of `episode` and `instruction`.")
    ] = None,
    lake: Lake = None,
    home: Home = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Give episodes another instruction, as a new version of their data set."""
    from flows.commands.edit import relabel as command

    screen = Screen(as_json=as_json, quiet=quiet, debug=debug)
    raise typer.Exit(command(places(lake, home), dataset, episode or [], instruction, labels, screen))


@app.command()
def merge(
    datasets: Annotated[list[str], typer.Argument(help="NAME, NAME@VERSION or NAME@TAG of each.")],
    into: Annotated[str, typer.Option("--into", help="Data set to append to; it may be new.")],
    lake: Lake = None,
    home: Home = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Put the episodes of several data sets into one, each recording once."""
    from flows.commands.edit import merge as command

    raise typer.Exit(command(places(lake, home), datasets, into, Screen(as_json=as_json, quiet=quiet, debug=debug)))


@app.command()
def compact(
    dataset: Edited,
    forget_before: Annotated[
        int | None, typer.Option("--forget-before", metavar="VERSION", help="Give older versions up; gc takes them.")
    ] = None,
    lake: Lake = None,
    home: Home = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a data set's many small files together, as a new version of the same content."""
    from flows.commands.edit import compact as command

    screen = Screen(as_json=as_json, quiet=quiet, debug=debug)
    raise typer.Exit(command(places(lake, home), dataset, forget_before, screen))


@app.command()
def tag(
    dataset: Dataset,
    name: Annotated[str, typer.Argument(help="What NAME@TAG will mean everywhere.")],
    move: Annotated[bool, typer.Option("--move", help="Let a tag mean another version; that is kept.")] = False,
    lake: Lake = None,
    home: Home = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Name a version of a data set."""
    from flows.commands.edit import tag as command

    screen = Screen(as_json=as_json, quiet=quiet, debug=debug)
    raise typer.Exit(command(places(lake, home), dataset, name, move, screen))
