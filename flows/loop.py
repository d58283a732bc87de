"""The closed loop in one screen: which stage follows which, and what each is given.

`call` decides what happens at each stage: the flow builds, `plan` only looks.
"""

from collections.abc import Callable
from typing import Any

from flows.recipe import Loop
from tasks import catalogue as stages

Call = Callable[..., Any]  # (stage, spec, *refs) -> ref


def closed_loop(loop: Loop, source: Any, call: Call) -> Any:
    """Episodes in, a model version out. `source` is the snapshot of a folder, unless the loop collects."""
    episodes = call(stages.collect, loop.collect) if loop.collect else source
    dataset = call(stages.ingest, loop.ingest, episodes)
    preprocessed = call(stages.preprocess, loop.preprocess, dataset)
    packed = call(stages.pack, loop.pack, preprocessed)
    checkpoint = call(stages.train, loop.train, preprocessed, packed)
    export = call(stages.export, loop.export, checkpoint, preprocessed)
    report = call(stages.evaluate, loop.evaluate, export, preprocessed)
    return call(stages.register, loop.register, export, report)
