"""One flow run: its recipe, its runtime, its snapshot of the world, and what the lake is told of it."""

import dataclasses
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from data_lake.files import LakePath, put_if_absent
from data_lake.objects import is_object_uri
from data_lake.refs import Ref, SourceRef
from data_lake.runs import Run
from flows.plan import other_sources, require_source
from flows.recipe import LoopRecipe
from tasks.build import Stage
from tasks.events import StageEvents
from tasks.runtime import Runtime


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """What the flows have in common. A Retry of a run opens the same session again."""

    recipe: LoopRecipe
    runtime: Runtime
    run: Run

    def source(self) -> SourceRef | None:
        """The source as this run first saw it; None when the recipe collects."""
        path = require_source(self.recipe)
        return self.run.source(lambda: look_at(path, lake=self.runtime.lake, home=self.runtime.home)) if path else None

    def other_sources(self) -> list[SourceRef]:
        """Likewise those of a mixture's further components."""
        at = {"lake": self.runtime.lake, "home": self.runtime.home}
        paths = other_sources(self.recipe)
        return [self.run.source(partial(look_at, path, **at), str(n)) for n, path in enumerate(paths, start=1)]

    def call(self, stage: Stage, spec: Any, *refs: Ref) -> Ref:
        """Build the stage, or find it built, as a task of this flow run."""
        return stage(spec, *refs, runtime=self.runtime)

    def finish(self) -> None:
        self.run.finish(self.recipe.name)
        self.event("finished")

    def event(self, name: str, **fields: Any) -> None:
        StageEvents(stage="", slot="", runtime=self.runtime).write(name, **fields)


def absolute_source(source: str) -> str:
    """A folder wherever it is read from; `lake:NAME` and `s3://…` are the same everywhere."""
    return source if source.startswith("lake:") or is_object_uri(source) else str(Path(source).resolve())


def look_at(path: str, *, lake: LakePath, home: Path) -> SourceRef:
    """The present content of a source folder, or of the data set that `lake:NAME` names, as one digest."""
    if path.startswith("lake:"):
        from data_lake.head import look_at_head

        return look_at_head(lake, path)
    return look_at_files(path, home)


def look_at_files(
    path: str, home: Path, say: Callable[[str], None] = lambda _line: None, *, rehash: bool = False
) -> SourceRef:
    """The present content of a folder, or of what is below `s3://…`: the same files are the same source. rehash: also
    the files whose size and mtime are as they were."""
    from data_lake.sources.remote import source_folder
    from data_lake.sources.snapshot import snapshot

    seen = snapshot(source_folder(path, home, say), home / "snapshots", rehash=rehash)
    return dataclasses.replace(seen, path=path) if is_object_uri(path) else seen


def open_session(recipe: LoopRecipe, runtime: Runtime) -> Session:
    """Begin the run that `runtime` names, or continue it after a Retry."""
    run = Run(lake=runtime.lake, run_id=runtime.run_id)
    payload = {"recipe": dataclasses.asdict(recipe), "started": time.time()}
    put_if_absent(run.path / "recipe.json", json.dumps(payload, indent=1).encode())
    session = Session(recipe=recipe, runtime=runtime, run=run)
    session.event("run", recipe=recipe.name, lake=str(runtime.lake))
    return session
