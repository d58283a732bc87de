"""`run`: from the records when all is done, on the server of `up` while it runs, else in this process."""

import getpass
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data_lake.refs import SourceRef
from data_lake.store import revoke
from errors import UserError
from flows.api import TERMINAL, Json, PrefectApi
from flows.follow import Board, follow
from flows.outcome import Outcome, closing_lines, success_table
from flows.places import Places
from flows.plan import PlannedStage, make_plan, other_sources, require_source
from flows.profile import load_profile
from flows.recipe import LoopRecipe, load
from flows.screen import DONE, FAILED, REJECTED, Screen
from flows.services import ledger
from flows.session import absolute_source, look_at
from tasks.events import read_events

DEPLOYMENT = "train-loop/tiny"
"""Any deployment of the loop will do: recipe, changes and places are parameters of the run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What was asked for. until: the last stage to build, None for all."""

    recipe: str
    changes: tuple[str, ...]
    profile: str
    where: Places
    until: str | None = None

    def load(self) -> LoopRecipe:
        return load(self.recipe, self.changes)

    def outcome(self, planned: Sequence[PlannedStage], events: Sequence[Json] = ()) -> Outcome:
        asked: Json = {"recipe": self.recipe, "changes": self.changes, "until": self.until}
        return Outcome(**asked, lake=self.where.lake, home=self.where.home, planned=planned, events=events)

    def plan(self, recipe: LoopRecipe, sources: tuple[SourceRef | None, list[SourceRef]]) -> list[PlannedStage]:
        return make_plan(recipe, self.where.lake, *sources, until=self.until)

    def parameters(self) -> Json:
        """Of the flow run. Whoever executes it stands in another folder, so paths become absolute."""
        settings = list(self.changes)
        if source := self.load().ingest.source:
            settings.append(f"ingest.source={json.dumps(absolute_source(source))}")
        for number, other in enumerate(self.load().mixture.others):
            if other.ingest.source:
                path = json.dumps(absolute_source(other.ingest.source))
                settings.append(f"mixture.others.{number}.ingest.source={path}")
        rest = {"lake": str(self.where.lake), "home": str(self.where.home)} | (
            {"until": self.until} if self.until else {}
        )
        return {"recipe": _absolute(self.recipe), "settings": settings, "profile": _absolute(self.profile), **rest}


def _absolute(name: str) -> str:
    """`name`, or where the YAML file of that name is."""
    return str(Path(name).resolve()) if name.endswith((".yaml", ".yml")) else name


def run(order: Order, rebuild: str | None, why: str | None, screen: Screen) -> int:
    """Build what is missing of the loop, show how it goes, and end with the result. Returns the exit status."""
    recipe = order.load()
    runtime = load_profile(order.profile, order.where, run_id="", label=recipe.name)  # an unknown profile ends here
    sources = look_at_sources(recipe, order.where)
    planned = order.plan(recipe, sources)
    if rebuild is not None:
        _revoke(planned, rebuild, why, screen)
        planned = order.plan(recipe, sources)
    until = f" · until {order.until}" if order.until else ""
    profile = f"profile {order.profile} ({runtime.workers} workers)"
    screen.line(f"recipe {recipe.name} · {profile} · lake {order.where.lake}{until}")
    screen.line()
    if all(each.is_settled for each in planned):
        return _end(order.outcome(planned), None, screen)
    run_id, error = _execute(order, screen)
    planned = order.plan(recipe, sources)
    events = read_events(order.where.home, run_id) if run_id else []
    return _end(order.outcome(planned, events), error, screen)


def look_at_sources(recipe: LoopRecipe, where: Places) -> tuple[SourceRef | None, list[SourceRef]]:
    """The recipe's source as it is now, None when the recipe collects; and those of a mixture's further components."""
    path = require_source(recipe)
    own = None if path is None else look_at(path, lake=where.lake, home=where.home)
    return own, [look_at(each, lake=where.lake, home=where.home) for each in other_sources(recipe)]


def _execute(order: Order, screen: Screen) -> tuple[str | None, UserError | None]:
    """(id of the flow run, what went wrong)."""
    url = ledger.server_url(order.where.home)
    if url is not None and PrefectApi(url=url, timeout_s=5).is_healthy():
        return _on_server(PrefectApi(url=url), order, screen)
    return _here(order, screen)


def _on_server(api: PrefectApi, order: Order, screen: Screen) -> tuple[str, UserError | None]:
    """Start the deployment, or join the run that already does the same, and follow it."""
    parameters = order.parameters()
    run_id = _same_run(api, parameters)
    if run_id is None:
        run_id = api.start_deployment(DEPLOYMENT, parameters, tags=(order.recipe, order.profile))["id"]
    else:
        screen.line("the same run is on already; following it")
    page = f"{api.url.removesuffix('/api')}/runs/flow-run/{run_id}"
    screen.line(f"  {page}")

    def over() -> str | None:
        kind = api.flow_run(run_id)["state"]["type"]
        return kind if kind in TERMINAL else None

    try:
        board = follow(order.where.home, run_id, over, screen)
    except KeyboardInterrupt:
        screen.line(f"no longer following; the run goes on, see {page}")
        raise
    state = api.flow_run(run_id)["state"]
    if state["type"] == "COMPLETED":
        return run_id, None
    return run_id, _failure(board, state["message"] or state["name"], f"press Retry at {page}, or run the same command")


def _same_run(api: PrefectApi, parameters: Json) -> str | None:
    going = {"state": {"type": {"any_": ["RUNNING", "PENDING", "SCHEDULED"]}}}
    runs = api.flow_runs(going, flows=["train-loop"])
    return next((run["id"] for run in runs if run["parameters"] == parameters), None)


def _here(order: Order, screen: Screen) -> tuple[str | None, UserError | None]:
    """The flow in the main thread, where Ctrl-C arrives; its events shown by another."""
    screen.line("  starting Prefect for this run (`./vlaloop up` keeps one running)")
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    from flows import trace
    from flows.train_loop import train_loop

    ended = threading.Event()
    known = trace.run_ids(order.where.home)
    found: list[tuple[str, Board]] = []

    def watch() -> None:
        run_id = trace.wait_for_own(order.where.home, known, ended)
        if run_id is not None:
            board = follow(order.where.home, run_id, lambda: "ended" if ended.is_set() else None, screen)
            found.append((run_id, board))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        state = train_loop(**order.parameters(), return_state=True)
    finally:
        ended.set()
        watcher.join()
    run_id, board = found[0] if found else (None, Board())
    if state.is_completed():
        return run_id, None
    if screen.debug:
        state.result()
    return run_id, _failure(board, state.message or state.name, "run the same command again; what is done stays done")


def _failure(board: Board, message: str, next_step: str) -> UserError:
    """The paragraph of the stage that failed, under its own code where it has one."""
    failed = next((row for row in board.rows.values() if row.state == "failed"), None)
    text = failed.text if failed else message.removeprefix("Flow run encountered an exception: ")
    kind, _, told = text.partition(": ")
    if kind == "UserError":
        return _parsed(told, next_step)
    where = f"stage {failed.stage}" if failed else ""
    if kind != "Transient":
        next_step = f"this looks like a mistake in the code or the machine: mend its cause, then {next_step}"
    return UserError("RUN-001", text, where=where, done="finished stages stay finished", next_step=next_step)


def _parsed(paragraph: str, next_step: str) -> UserError:
    """A `UserError` from what it printed in another process."""
    head, *rest = paragraph.splitlines()
    code, _, message = head.partition(": ")
    parts = {"where": "", "done": "", "next": next_step}
    for line in rest:
        name, colon, value = line.strip().partition(": ")
        known = colon and name in ("done", "next")
        parts[name if known else "where"] = value if known else line.strip()
    return UserError(code, message, where=parts["where"], done=parts["done"], next_step=parts["next"])


def _revoke(planned: Sequence[PlannedStage], rebuild: str, why: str | None, screen: Screen) -> None:
    """Declare a stage's record bad, for the audit: who, when and why."""
    if not why:
        raise UserError("CLI-002", "--rebuild needs a reason", next_step=f'--rebuild {rebuild} --why "…"')
    found = next((each for each in planned if each.stage.title == rebuild), None)
    if found is None:
        known = ", ".join(each.stage.title for each in planned)
        raise UserError("CLI-003", f"no stage {rebuild!r} in this run", next_step=f"known: {known}")
    if found.slot is None or found.record is None:
        screen.line(f"{rebuild} is not built yet; nothing to revoke")
        return
    revoke(found.slot, why=why, who=getpass.getuser())
    screen.line(f"revoked {found.slot.name}: {why}")


def _end(outcome: Outcome, error: UserError | None, screen: Screen) -> int:
    value: dict[str, Any] = outcome.as_json()
    if error is not None:
        status = screen_error(error, value, screen)
        return status or FAILED
    unfinished = [each.stage.title for each in outcome.planned if not each.record]
    if unfinished:
        lost = UserError(
            "RUN-002", f"the run ended without {', '.join(unfinished)}", next_step="the source or a record changed "
            "meanwhile; run the same command again"
        )  # fmt: skip
        return screen_error(lost, value, screen)
    screen.line()
    if (table := success_table(outcome.refs)) is not None:
        screen.show(table)
    for line in closing_lines(outcome):
        screen.line(line)
    screen.answer(value)
    return REJECTED if outcome.is_rejected else DONE


def screen_error(error: UserError, value: Json, screen: Screen) -> int:
    """The paragraph for people; for machines the object of `run` with the error in it."""
    from flows.screen import error_object

    status = Screen(debug=screen.debug).error(error)
    screen.answer(json.loads(json.dumps({**value, **error_object(error)})))
    return status
