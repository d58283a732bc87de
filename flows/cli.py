"""The command line: names, options and help texts. What a command does is imported when it is given."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from errors import Transient, UserError
from flows.cli_data import app as data
from flows.cli_edit import app as edit
from flows.cli_views import app as saved_views
from flows.options import AsJson, Debug, Home, Lake, Profile, Quiet, Recipe, Set, Until
from flows.places import places
from flows.screen import Screen

UsageError: Any = typer.BadParameter.__base__
"""Of whichever click typer stands on; newer ones bring their own."""

INTERRUPTED = 130
"""What typer makes of a KeyboardInterrupt."""

app = typer.Typer(
    name="vlaloop",
    help="From robot demonstrations to registered, simulation-proven policies: one loop, each stage built once.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(data)
app.add_typer(edit)
app.add_typer(saved_views)


@app.command()
def run(
    recipe: Recipe = "tiny",
    changes: Set = None,
    profile: Profile = "laptop",
    until: Until = None,
    rebuild: Annotated[str | None, typer.Option("--rebuild", metavar="STAGE", help="Revoke a stage's record.")] = None,
    why: Annotated[str | None, typer.Option("--why", help="The reason for --rebuild; it is kept.")] = None,
    lake: Lake = None,
    home: Home = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Build what is missing of a loop: demonstrations in, a registered policy out."""
    from flows.commands.run import Order
    from flows.commands.run import run as command

    order = Order(recipe=recipe, changes=tuple(changes or ()), profile=profile, where=places(lake, home), until=until)
    raise typer.Exit(command(order, rebuild, why, Screen(as_json=as_json, quiet=quiet, debug=debug)))


@app.command()
def plan(
    recipe: Recipe = "tiny",
    changes: Set = None,
    profile: Profile = "laptop",
    until: Until = None,
    lake: Lake = None,
    home: Home = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Say what a run would build, and why; change nothing."""
    from flows.commands.plan import plan as command
    from flows.commands.run import Order

    order = Order(recipe=recipe, changes=tuple(changes or ()), profile=profile, where=places(lake, home), until=until)
    raise typer.Exit(command(order, Screen(as_json=as_json, quiet=quiet, debug=debug)))


@app.command("ls")
def list_refs(
    stage: Annotated[str | None, typer.Argument(help="Only refs of this stage.")] = None,
    lake: Lake = None,
    home: Home = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """List what the lake holds."""
    from flows.commands.lake import ls as command

    raise typer.Exit(command(places(lake, home), stage, Screen(as_json=as_json, quiet=quiet, debug=debug)))


@app.command()
def show(
    ref: Annotated[str, typer.Argument(help="stage/fingerprint, or its beginning; NAME@champion, NAME@2; a data set.")],
    episode: Annotated[int | None, typer.Option("--episode", help="Of a data set: this episode alone.")] = None,
    source_episode: Annotated[
        str | None, typer.Option("--source-episode", help="The same, by its source's number: 1, or SOURCE:1.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Of a data set: write a page with pictures here.")] = None,
    lake: Lake = None,
    home: Home = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show what made a ref, back to the episodes; or what a data set holds."""
    from flows.commands.dataset import Asked
    from flows.commands.dataset import show as command

    asked = Asked(episode=episode, source_episode=source_episode, html=html)
    raise typer.Exit(command(places(lake, home), ref, asked, Screen(as_json=as_json, quiet=quiet, debug=debug)))


@app.command()
def report(
    recipe: Recipe = "tiny",
    changes: Set = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to. [report-RECIPE.html, or -SLOT.html with --set]")
    ] = None,
    lake: Lake = None,
    home: Home = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write one HTML page about a loop: verdict, success, videos, lineage."""
    from flows.commands.episodes import report as command
    from flows.commands.run import Order

    order = Order(recipe=recipe, changes=tuple(changes or ()), profile="laptop", where=places(lake, home))
    raise typer.Exit(command(order, out, Screen(as_json=as_json, quiet=quiet, debug=debug)))


@app.command()
def up(
    lake: Lake = None, home: Home = None, as_json: AsJson = False, quiet: Quiet = False, debug: Debug = False
) -> None:
    """Start Prefect, its worker, MLflow and the adopter on this machine; safe to repeat."""
    from flows.commands.services import up as command

    raise typer.Exit(command(places(lake, home), Screen(as_json=as_json, quiet=quiet, debug=debug)))


@app.command()
def down(
    lake: Lake = None, home: Home = None, as_json: AsJson = False, quiet: Quiet = False, debug: Debug = False
) -> None:
    """Stop exactly what `up` started."""
    from flows.commands.services import down as command

    raise typer.Exit(command(places(lake, home), Screen(as_json=as_json, quiet=quiet, debug=debug)))


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help="A module of benchmarks/.")],
    lake: Lake = None,
    home: Home = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Measure one of the project's claims on this machine."""
    from flows.commands.checks import bench as command

    raise typer.Exit(command(places(lake, home), name, Screen(as_json=as_json, quiet=quiet, debug=debug)))


@app.command("test", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run_tests(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="The slow ones too (up to 90 minutes).")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run the test suite; further arguments go to pytest."""
    from flows.commands.checks import test as command

    screen = Screen(as_json=as_json, quiet=quiet, debug=debug)
    raise typer.Exit(command(everything, [*(["-q"] if quiet else []), *context.args], screen))


@app.command()
def gc(
    grace_s: Annotated[float, typer.Option("--grace-s", min=0, help="Spare what is younger than this.")] = 86_400.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    lake: Lake = None,
    home: Home = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Remove what no record, live lease or unfinished run needs."""
    from flows.commands.lake import gc as command

    raise typer.Exit(command(places(lake, home), grace_s, dry_run, Screen(as_json=as_json, quiet=quiet, debug=debug)))


def main(arguments: list[str] | None = None) -> int:
    """Run one command; whatever goes wrong becomes one paragraph and an exit status."""
    given = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    screen = Screen(as_json="--json" in given, debug="--debug" in given)
    try:
        status = app(given, prog_name="vlaloop", standalone_mode=False)
    except UsageError as wrong:
        command = wrong.ctx.command_path if wrong.ctx else "vlaloop"
        return screen.error(UserError("CLI-001", wrong.format_message(), next_step=f"{command} --help"))
    except (typer.Abort, KeyboardInterrupt):
        return _stopped(screen)
    except UserError as error:
        if screen.debug:
            raise
        return screen.error(error)
    except Transient as error:
        if screen.debug:
            raise
        return screen.error(_disturbed(error))
    except Exception as error:
        if screen.debug:
            raise
        told = f"{type(error).__name__}: {error}"
        return screen.error(UserError("CLI-999", told, next_step="the same command with --debug shows where"))
    return _stopped(screen) if status == INTERRUPTED else int(status or 0)


def _disturbed(error: Transient) -> UserError:
    """What nobody retried, since no flow was there to: another command or machine came between."""
    return UserError(
        "LAKE-245",
        f"something came between: {error}",
        done="what was finished before stays finished",
        next_step="the same command again; while it works, start no gc with a short --grace-s",
    )


def _stopped(screen: Screen) -> int:
    """After Ctrl-C."""
    return screen.error(UserError("RUN-003", "stopped by Ctrl-C", next_step="the same command continues"))


if __name__ == "__main__":
    sys.exit(main())
