"""What a run would build and why, and what is done already: from the lake's records alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from data_lake.files import LakePath
from data_lake.reasons import reasons
from data_lake.refs import Ref, SourceRef, from_json
from data_lake.standing import lost, unread
from data_lake.store import Slot, records
from errors import UserError
from flows.loop import closed_loop, up_to
from flows.recipe import LoopRecipe, resolve
from tasks.build import Stage
from tasks.code import code_digest


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedStage:
    """One row of the plan. `slot` is unknown while an upstream data set is: its content names it. why: it is to be
    built, or, where it is done, looked at once more."""

    stage: Stage
    slot: Slot | None
    record: dict[str, Any] | None
    why: tuple[str, ...]

    @property
    def state(self) -> str:
        return "done" if self.record else "build"

    @property
    def is_settled(self) -> bool:
        """Whether a run has nothing to do here."""
        return self.record is not None and not self.why

    @property
    def code_differs(self) -> bool:
        """The code has changed since the build: shown, never a reason to rebuild."""
        return self.record is not None and self.record["code"] != code_digest(self.stage.module)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pending(Ref):
    """Stands for a ref that only building gives."""


def make_plan(
    recipe: LoopRecipe,
    lake: LakePath,
    source: SourceRef | None,
    others: Sequence[SourceRef] = (),
    until: str | None = None,
) -> list[PlannedStage]:
    """The loop's stages in order, no further than `until`; `others`: sources of a mixture. Pure look: nothing is
    created in the lake."""
    planned: list[PlannedStage] = []

    def look(stage: Stage, spec: Any, *refs: Ref) -> Ref:
        planned.append(_look(stage, spec, refs, lake, recipe.name))
        found = _expected(planned[-1].slot) if planned[-1].slot else None
        return found or _Pending(uri="", fingerprint="")

    loop = resolve(recipe)
    closed_loop(loop, source, up_to(until, loop, look), others)
    return planned


def _look(stage: Stage, spec: Any, refs: Sequence[Ref], lake: LakePath, label: str) -> PlannedStage:
    if any(isinstance(ref, _Pending) for ref in refs):
        return PlannedStage(stage=stage, slot=None, record=None, why=_reasons_without_inputs(stage, spec, lake, label))
    slot = stage.slot(spec, *refs, lake=lake)
    record = slot.record()
    if record is None:
        return PlannedStage(stage=stage, slot=slot, record=None, why=tuple(reasons(slot, label)))
    if gone := lost(lake, record):
        return PlannedStage(stage=stage, slot=slot, record=None, why=(f"revoked: {gone}",))
    return PlannedStage(stage=stage, slot=slot, record=record, why=tuple(filter(None, [unread(lake, record)])))


def _expected(slot: Slot) -> Ref | None:
    """What the slot holds, or will: the same source gives the same content into a data set of any name."""
    return slot.ref() or next((from_json(record["ref"]) for record in _elsewhere(slot)), None)


def _elsewhere(slot: Slot) -> Iterator[dict[str, Any]]:
    """Records of ingests of the same into a data set of another name, the newest first."""
    if slot.stage == "ingest" and "revoked" not in slot.identity:
        wanted = _nameless(slot.identity)
        for record in reversed(records(slot.lake, slot.stage)):
            if "revoked" not in record and _nameless(record["identity"]) == wanted:
                yield record


def _nameless(identity: dict[str, Any]) -> dict[str, Any]:
    ingest = {key: value for key, value in identity["spec"]["ingest"].items() if key != "dataset"}
    return {key: identity[key] for key in ("version", "inputs")} | {"ingest": ingest}


def _reasons_without_inputs(stage: Stage, spec: Any, lake: LakePath, label: str) -> tuple[str, ...]:
    """The stage's own changes, if any, and that its inputs will change."""
    own = reasons(stage.slot(spec, lake=lake), label)
    return tuple([reason for reason in own if reason not in ("upstream", "unfinished")] + ["upstream"])


def require_source(recipe: LoopRecipe) -> str | None:
    """The folder that the recipe reads, None when it collects. Raises UserError when it has neither."""
    if recipe.collect is not None:
        return None
    if not recipe.ingest.source:
        raise UserError(
            "RECIPE-005",
            f"recipe {recipe.name} neither collects nor names a source",
            where="ingest.source",
            next_step=f"./vlaloop run {recipe.name} --set ingest.source=PATH",
        )
    return recipe.ingest.source


def other_sources(recipe: LoopRecipe) -> list[str]:
    """What the further components of a mixture read. Raises UserError for one that names no source."""
    for number, each in enumerate(recipe.mixture.others):
        if not each.ingest.source:
            where = f"mixture.others.{number}.ingest.source"
            hint = "a folder of episodes, lake:NAME or lake:NAME/VIEW"
            raise UserError("RECIPE-005", f"{each.name} names no source", where=where, next_step=hint)
    return [each.ingest.source or "" for each in recipe.mixture.others]
