"""The closed loop in one screen: which stage follows which, and what each is given.

`call` decides what happens at each stage: the flow builds, `plan` only looks.
"""

from collections.abc import Callable, Sequence
from typing import Any

from errors import UserError
from flows.recipe import Loop
from tasks import catalogue as stages

Call = Callable[..., Any]  # (stage, spec, *refs) -> ref


def up_to(last: str | None, loop: Loop, call: Call) -> Call:
    """`call` for the stages up to the one named `last`; a later one is not called, the newest ref stands for its own,
    so that the loop ends with what `last` gave. None: all are called. Raises UserError CLI-003 where `loop` has no such
    stage."""
    absent = {stages.collect.name: loop.collect is None, stages.mix.name: loop.mix is None}
    order = [name for name in stages.STAGES if not absent.get(name)]
    if last is None:
        return call
    if last not in order:
        raise UserError("CLI-003", f"no stage {last!r} in this recipe", next_step=f"known: {', '.join(order)}")
    newest: list[Any] = []

    def bounded(stage: Any, spec: Any, *refs: Any) -> Any:
        if order.index(stage.name) <= order.index(last):
            newest.append(call(stage, spec, *refs))
        return newest[-1]

    return bounded


def closed_loop(loop: Loop, source: Any, call: Call, others: Sequence[Any] = ()) -> Any:
    """Episodes in, a model version out. `source` is the snapshot of a folder, unless the loop collects; `others` are
    those of a mixture's further data sets."""
    episodes = call(stages.collect, loop.collect) if loop.collect else source
    dataset = call(stages.ingest, loop.ingest, episodes)
    preprocessed = call(stages.preprocess, loop.preprocess, dataset)
    if loop.mix:
        preprocessed = call(stages.mix, loop.mix, preprocessed, *taken_in(loop, others, call))
    packed = call(stages.pack, loop.pack, preprocessed)
    checkpoint = call(stages.train, loop.train, preprocessed, packed)
    export = call(stages.export, loop.export, checkpoint, preprocessed)
    report = call(stages.evaluate, loop.evaluate, export, preprocessed)
    return call(stages.register, loop.register, export, report)


def taken_in(loop: Loop, sources: Sequence[Any], call: Call) -> list[Any]:
    """The further data sets of a mixture, each ingested and preprocessed by itself."""
    datasets = [
        call(stages.ingest.of(part.name), part.ingest, source)
        for part, source in zip(loop.others, sources, strict=True)
    ]
    return [
        call(stages.preprocess.of(part.name), part.preprocess, dataset)
        for part, dataset in zip(loop.others, datasets, strict=True)
    ]
