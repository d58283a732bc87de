"""The command line, where it is about recordings and data sets: names, options and help texts."""

from pathlib import Path
from typing import Annotated

import typer

from flows.options import AsJson, Dataset, Debug, Format, Home, Lake, Quiet, Read
from flows.places import places
from flows.screen import Screen

app = typer.Typer()


@app.command()
def doctor(
    source: Annotated[
        str, typer.Argument(help="A folder of episodes or s3://BUCKET/PREFIX, or a data set of the lake.")
    ],
    source_format: Format = "auto",
    changes: Read = None,
    deep: Annotated[bool, typer.Option("--deep", help="Decode every frame of all videos.")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="First mend in meta/ what the rows prove.")] = False,
    lake: Lake = None,
    home: Home = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Check recorded episodes: what is wrong, where, and what mends it."""
    from flows.commands.episodes import doctor as command

    screen = Screen(as_json=as_json, quiet=quiet, debug=debug)
    reading = (source_format, tuple(changes or ()))
    raise typer.Exit(command(places(lake, home), source, reading, screen, deep=deep, repair=repair))


@app.command()
def ingest(
    source: Annotated[str, typer.Argument(help="A folder of episodes, or s3://BUCKET/PREFIX.")],
    dataset: Annotated[str, typer.Option("--dataset", help="Data set of the lake to append to.")],
    embodiment: Annotated[str, typer.Option("--embodiment", help="The robot that recorded them.")],
    source_format: Format = "auto",
    changes: Read = None,
    verify: Annotated[bool, typer.Option("--verify", help="Hash every file again; else size and time decide.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit 1 if any is in quarantine; the others stay in the lake.")
    ] = False,
    reference: Annotated[bool, typer.Option("--reference", help="Leave video files where they are, uncopied.")] = False,
    why: Annotated[str | None, typer.Option("--why", help="Ingest again what is done; the reason is kept.")] = None,
    lake: Lake = None,
    home: Home = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Take recorded episodes into a data set of the lake."""
    from flows.commands.episodes import ingest as command

    screen = Screen(as_json=as_json, quiet=quiet, debug=debug)
    reading = (source_format, tuple(changes or ()))
    where = places(lake, home)
    raise typer.Exit(
        command(
            where,
            source,
            dataset,
            embodiment,
            reading,
            screen,
            strict=strict,
            verify=verify,
            copy="reference" if reference else "copy",
            why=why,
        )
    )


@app.command()
def path(
    dataset: Dataset,
    lake: Lake = None,
    home: Home = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Print where LeRobot opens a version of a data set; nothing under that path ever changes."""
    from flows.commands.publish import path as command

    raise typer.Exit(command(places(lake, home), dataset, Screen(as_json=as_json, quiet=quiet, debug=debug)))


@app.command()
def publish(
    dataset: Dataset,
    folder: Annotated[Path, typer.Argument(help="The folder to write; it must not exist.")],
    form: Annotated[str, typer.Option("--as", help="Version of the LeRobot format: v3.0 or v2.1.")],
    lake: Lake = None,
    home: Home = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a version of a data set as a LeRobot folder."""
    from flows.commands.publish import publish as command

    screen = Screen(as_json=as_json, quiet=quiet, debug=debug)
    raise typer.Exit(command(places(lake, home), dataset, folder, form, screen))
