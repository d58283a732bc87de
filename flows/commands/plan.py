"""`plan`: what a run would build, and why; nothing is changed."""

from dataclasses import asdict
from typing import Any

from data_lake.lease import Holder
from data_lake.store import builders, records
from data_lake.words import counted
from flows.commands.run import Order, look_at_sources
from flows.outcome import result, slot_name
from flows.plan import PlannedStage
from flows.profile import load_profile
from flows.recipe import LoopRecipe
from flows.screen import DONE, Screen, seconds, size


def plan(order: Order, screen: Screen) -> int:
    """Print stage, slot, state and reason of every stage."""
    recipe = order.load()
    planned = order.plan(recipe, look_at_sources(recipe, order.where))
    outcome, building = order.outcome(planned), builders(order.where.lake)
    rows = []
    took = {each.stage.title: _last_time(each, order, recipe.name) for each in planned}
    for each in planned:
        slot = each.slot.name if each.slot else "…"
        builder = building.get(slot_name(each) or "")
        rows.append((each.stage.title, slot, each.state, _why(each, took[each.stage.title], builder)))
    screen.table(("stage", "slot", "state", "why"), rows, whole=("stage", "slot", "state"))
    missing = [took[each.stage.title] for each in planned if not each.record]
    screen.line()
    if all(each.is_settled for each in planned):
        screen.line("everything is done")
    elif not missing:
        screen.line("everything is done, but for what is looked at again")
    elif all(each is not None for each in missing):
        screen.line(
            f"{counted(len(missing), 'stage')} to build · about {seconds(sum(each or 0.0 for each in missing))} here"
        )
    memory = _memory(order, recipe) if any(each.stage.name == "train" and not each.record for each in planned) else None
    if memory:
        screen.line(_memory_line(memory))
    screen.answer(
        {
            "recipe": recipe.name,
            "lake": str(order.where.lake),
            "seconds": round(sum(each or 0.0 for each in missing), 3),
            "stages": [_stage(each, took[each.stage.title], building) for each in planned],
            "memory": memory,
            "result": result(outcome.refs, outcome.alias),
        }
    )
    return DONE


def _memory(order: Order, recipe: LoopRecipe) -> dict[str, Any]:
    """What one rank of the training needs, in bytes, and what there is: of the GPU, else of the machine."""
    from model_core.embodiments import find_embodiment
    from model_core.memory import available_bytes, predict, tokens_per_sample  # torch; only a plan that trains needs it
    from model_core.tokenizers import fit_tokenizer

    runtime = load_profile(order.profile, order.where, run_id="")
    robot = find_embodiment(recipe.ingest.embodiment)
    rows = runtime.micro_batch_rows or -(-recipe.train.rows_per_step // runtime.processes)
    tasks = recipe.collect.tasks if recipe.collect else recipe.evaluate.tasks
    needed = predict(
        recipe.policy,
        recipe.train,
        num_samples=max(1, rows * recipe.pack.tokens_per_row // tokens_per_sample(recipe.policy)),
        proprio_dim=robot.state_dim,
        action_dim=robot.action_dim,
        vocabulary=fit_tokenizer([task.instruction for task in tasks], asdict(recipe.policy.inputs))["size"],
    )
    available = available_bytes(runtime.processes)
    return asdict(needed) | {"available": available, "fits": needed.total <= available}


def _memory_line(memory: dict[str, Any]) -> str:
    named = {"weights": "weights", "optimizer": "optimiser", "activations": "activations"}
    parts = [f"{word} {size(memory[name])}" for name, word in named.items()]
    verdict = "fits" if memory["fits"] else "does not fit: set micro_batch_rows in the profile, or a smaller policy"
    at = f"at micro-batch {memory['num_samples']}"
    return f"memory      {' · '.join(parts)} {at}   ({verdict}: {size(memory['available'])})"


def _why(planned: PlannedStage, took: float | None, builder: Holder | None) -> str:
    if planned.record:
        parts = [planned.record["summary"]["line"] or "built"]
        return " · ".join([*parts, *planned.why, *(["code differs since build"] if planned.code_differs else [])])
    about = f" · about {seconds(took)} here" if took else ""
    by = f" · run {builder.run_id} is at it" if builder else ""
    return "; ".join(planned.why) + about + by


def _stage(planned: PlannedStage, took: float | None, building: dict[str, Holder]) -> dict[str, Any]:
    """seconds: what it took (done), or what the last one of its kind took (build). builder: the run at it, if any."""
    slot = slot_name(planned)
    return {
        "name": planned.stage.title,
        "slot": slot,
        "builder": building[slot].run_id if slot in building else None,
        "state": planned.state,
        "why": list(planned.why),
        "code_differs": planned.code_differs,
        "seconds": took,
        "ref": planned.record["ref"] if planned.record else None,
    }


def _last_time(planned: PlannedStage, order: Order, label: str) -> float | None:
    """Seconds that the stage took here, or that the recipe's newest one of its kind took; None when there was none."""
    if planned.record:
        return planned.record["provenance"]["seconds"]
    earlier = [record for record in records(order.where.lake, planned.stage.name) if record["label"] == label]
    return earlier[-1]["provenance"]["seconds"] if earlier else None
