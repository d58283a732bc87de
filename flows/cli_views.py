"""Commands about saved views of a data set: names, options and help texts."""

from typing import Annotated

import typer

from flows.options import AsJson, Dataset, Debug, Home, Lake, Quiet
from flows.places import places
from flows.screen import Screen

app = typer.Typer()


@app.command()
def view(
    dataset: Dataset,
    name: Annotated[str, typer.Argument(help="Name of the view.")],
    where: Annotated[
        str, typer.Option("--where", metavar="SQL", help="Condition over columns of episodes, e.g. length > 40.")
    ] = "",
    episodes: Annotated[
        str, typer.Option("--episodes", metavar="1-5,source:30", help="Only these, by lake or by source numbers.")
    ] = "",
    exclude: Annotated[str, typer.Option("--exclude", metavar="3,7", help="All but these.")] = "",
    lake: Lake = None,
    home: Home = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Choose episodes of a data set and save the choice; without options, show what a saved view keeps."""
    from flows.commands.views import view as command

    screen = Screen(as_json=as_json, quiet=quiet, debug=debug)
    raise typer.Exit(command(places(lake, home), dataset, name, (where, episodes, exclude), screen))


@app.command()
def views(
    dataset: Dataset,
    lake: Lake = None,
    home: Home = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """List the saved views of a data set."""
    from flows.commands.views import views as command

    raise typer.Exit(command(places(lake, home), dataset, Screen(as_json=as_json, quiet=quiet, debug=debug)))
