"""The closed loop as a Prefect flow: episodes in, a registered policy out."""

from collections.abc import Sequence
from typing import Any

from prefect.states import Completed

from data_lake.refs import ModelVersionRef
from flows.changes import RecipeChanges, assignments
from flows.loop import closed_loop, up_to
from flows.places import places
from flows.profile import load_profile
from flows.recipe import changed, load, resolve
from flows.server import loop_flow, present_run
from flows.session import Session, open_session


def begin(
    recipe: str, settings: Sequence[str], changes: Any, profile: str, lake: str | None, home: str | None
) -> Session:
    """The session of the present flow run; a Retry begins the same one again."""
    run_id = present_run().run_id
    where = places(lake, home)
    wanted = load(recipe, settings)
    if given := assignments(changes):
        wanted = changed(wanted, given)
    return open_session(wanted, load_profile(profile, where, run_id=run_id, label=wanted.name))


def run_name() -> str:
    """`tiny · 2026-12-02 09:14`, in UTC."""
    run = present_run()
    return f"{run.parameters['recipe']} · {run.expected_start:%Y-%m-%d %H:%M}"


@loop_flow(name="train-loop", flow_run_name=run_name)
def train_loop(
    recipe: str = "tiny",
    settings: list[str] | None = None,
    changes: RecipeChanges | None = None,  # type: ignore[valid-type]  # a model made from the recipe's fields
    profile: str = "laptop",
    lake: str | None = None,
    home: str | None = None,
    until: str | None = None,
) -> Any:  # a state that holds the last stage's ref, of a whole loop the ModelVersionRef: it is what the caller gets
    """Safe to rerun at any time: a finished stage returns its ref at once, a half-finished one continues.

    recipe: what to build: tiny, smoke, gr1, a YAML file, or a dotted `module:NAME`.
    settings: fields of the recipe to set, as `--set` takes them: `["train.num_steps=3000"]`; changes: the same as a
    form, where an empty field means "as the recipe has it". profile: where, and with how much of the machine.
    lake, home: data and records, local state; by default ./lake and .vlaloop beside it. until: the last stage to build,
    such as preprocess; by default all are.
    """
    session = begin(recipe, settings or (), changes, profile, lake, home)
    loop = resolve(session.recipe)
    call = up_to(until, loop, session.call)
    last = closed_loop(loop, session.source(), call, session.other_sources())
    session.finish()
    if not isinstance(last, ModelVersionRef):
        return Completed(message=f"built until {until}, as asked", data=last)
    return Completed(name="Completed" if last.accepted else "Rejected", message=last.decision, data=last)
