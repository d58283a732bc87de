"""Watches an inbox: takes in the folders that are complete, and starts the loop when enough episodes are new."""

import json
import time
from pathlib import Path
from typing import cast

from prefect.client.schemas.objects import FlowRun
from prefect.deployments import run_deployment
from prefect.states import Completed

from data_lake.files import put_if_absent
from data_lake.head import SCHEME
from data_lake.tables import dataset_root, read_manifest
from errors import UserError
from flows.places import Places, places
from flows.profile import load_profile
from flows.recipe import RECIPES, LoopRecipe, load
from flows.server import loop_flow, present_run
from flows.session import look_at
from tasks.catalogue import ingest
from tasks.specs import IngestStage

CARD = Path("meta", "info.json")
"""A recorder writes it; a folder without it is not a recording (yet)."""


@loop_flow(name="ingest-new")
def ingest_new(
    recipe: str = "gr1",
    inbox: str | None = None,
    enough: int = 1,
    settle_s: float = 30.0,
    profile: str = "laptop",
    lake: str | None = None,
    home: str | None = None,
) -> object:
    """Safe to repeat: a folder that is in the lake already costs a look, and the same episodes start one loop.

    recipe: whose data set and embodiment; its loop trains on all of that data set. inbox: a folder of
    recordings, {home}/inbox by default. enough: new episodes since the last loop. settle_s: a folder that
    changed so recently may still be copied.
    """
    where, wanted = places(lake, home), inbox_recipe(recipe)
    runtime = load_profile(profile, where, run_id=present_run().run_id, label=f"{wanted.name} inbox")
    refused = []
    for path in ready(Path(inbox) if inbox else where.home / "inbox", settle_s=settle_s, now=time.time()):
        try:
            ingest(
                IngestStage(ingest=wanted.ingest), look_at(str(path), lake=where.lake, home=where.home), runtime=runtime
            )
        except UserError as error:  # one bad recording must not keep the others out
            refused.append(f"{path.name}: {error.code} {error.message}")
    started = start_loop(where, recipe, wanted.ingest.dataset, enough)
    return Completed(name="Completed" if not refused else "Refused", message="; ".join([started, *refused]))


def inbox_recipe(name: str) -> LoopRecipe:
    """Raises UserError INBOX-001 for a recipe that makes its episodes itself: what comes in would not reach it."""
    recipe = load(name)
    if recipe.collect is not None:
        hint = "name one that reads a source, such as gr1"
        raise UserError("INBOX-001", f"recipe {name} collects its own episodes", where="recipe", next_step=hint)
    return recipe


def ready(inbox: Path, *, settle_s: float, now: float) -> list[Path]:
    """Recordings in the inbox that have a card and have not changed for `settle_s` seconds, by name."""
    if not inbox.is_dir():
        return []
    whole = (path for path in sorted(inbox.iterdir()) if (path / CARD).is_file() and not path.name.startswith("."))
    return [path for path in whole if now - newest_change(path) >= settle_s]


def newest_change(folder: Path) -> float:
    """When anything in the folder last changed, in seconds since 1970."""
    return max(path.lstat().st_mtime for path in (folder, *folder.rglob("*")))


def start_loop(where: Places, recipe: str, dataset: str, enough: int) -> str:
    """Start the loop on the data set's head unless too little is new; returns what was done, as a sentence.

    The lake remembers for which version a loop was started. A crash in between starts none twice: the
    version is the run's idempotency key.
    """
    manifest = read_manifest(dataset_root(where.lake, dataset))
    if manifest is None:
        return "nothing has come in yet"
    marks = where.lake / "inbox" / dataset
    seen = max((json.loads(path.read_text())["episodes"] for path in marks.glob("[0-9]*.json")), default=0)
    if (new := manifest.num_episodes - seen) < max(1, enough):
        return f"{new} new episodes, {enough} start a loop"
    started = run_deployment(
        f"train-loop/{recipe}" if recipe in RECIPES else "train-loop/tiny",
        parameters={
            "recipe": recipe,
            "changes": {"ingest": {"source": f"{SCHEME}{dataset}"}},
            "lake": str(where.lake),
            "home": str(where.home),
        },
        timeout=0,
        idempotency_key=f"{where.lake} {dataset}@{manifest.version}",
        as_subflow=False,
    )
    run = cast(FlowRun, started)
    mark = {"episodes": manifest.num_episodes, "run_id": str(run.id)}
    put_if_absent(marks / f"{manifest.version:06d}.json", json.dumps(mark).encode())
    return f"{new} new episodes: loop {run.name} started on {dataset}@{manifest.version}"
