"""Options and arguments that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on the last line of standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Errors only.")]
Debug = Annotated[bool, typer.Option("--debug", help="Tracebacks.")]
Lake = Annotated[
    str | None,
    typer.Option("--lake", envvar="VLALOOP_LAKE", help="Data and records: a folder, or s3://BUCKET/PREFIX. [./lake]"),
]
Home = Annotated[
    Path | None, typer.Option("--home", envvar="VLALOOP_HOME", help="Local state. [.vlaloop beside the lake]")
]
Recipe = Annotated[str, typer.Argument(help="tiny, smoke, gr1, a YAML file or module:NAME.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help="Change a field of the recipe.")]
Until = Annotated[str | None, typer.Option("--until", metavar="STAGE", help="The last stage to build. [register]")]
Profile = Annotated[
    str, typer.Option("--profile", help="Where it runs: a name in deployments/profiles, or a YAML file.")
]
Read = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="ingest.read.FIELD=VALUE", help="Say what the files do not say of themselves."),
]
Dataset = Annotated[str, typer.Argument(help="NAME, NAME@VERSION or NAME@TAG of a data set of the lake.")]
Format = Annotated[str, typer.Option("--format", help="Format of the source; auto tells by its layout.")]
