"""Runs the closed loop without Prefect: `python -m tests.flows.loop_runner LAKE HOME RUN_ID [RECIPE [a.b=c …]]`."""

import sys
from pathlib import Path

from data_lake.files import LakePath, lake_path
from data_lake.refs import Ref
from flows.loop import closed_loop
from flows.places import Places
from flows.profile import load_profile
from flows.recipe import load, resolve
from flows.session import open_session
from tasks.build import Stage, build


def run_plainly(lake: LakePath, home: Path, run_id: str, recipe: str = "smoke", changes: tuple[str, ...] = ()) -> Ref:
    """The loop as the flow runs it, each stage built directly."""
    wanted = load(recipe, changes)
    runtime = load_profile("laptop", Places(lake=lake, home=home), run_id=run_id, label=wanted.name)
    session = open_session(wanted, runtime)

    def call(stage: Stage, spec: object, *refs: Ref) -> Ref:
        return build(stage, spec, *refs, runtime=runtime).ref

    version = closed_loop(resolve(wanted), session.source(), call, session.other_sources())
    session.finish()
    return version


if __name__ == "__main__":
    lake, home, run_id, *rest = sys.argv[1:]
    run_plainly(lake_path(lake), Path(home), run_id, rest[0] if rest else "smoke", tuple(rest[1:]))
