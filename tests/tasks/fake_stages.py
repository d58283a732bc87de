"""Stage functions for tests: tiny, real files, and as slow or as broken as their spec says."""

import time
from dataclasses import dataclass
from pathlib import Path

from data_lake.refs import EpisodesRef, Ref
from data_lake.store import Attempt
from errors import Transient
from tasks.runtime import Note, Progress, Runtime, Summary


@dataclass(frozen=True, kw_only=True, slots=True)
class CountSpec:
    """Counts to `steps`, a file each, `pause_s` apart; breaks as `fail` says until `mend` exists."""

    steps: int
    pause_s: float = 0.0
    fail: str = ""
    mend: str = ""


def count(spec: CountSpec, *refs: Ref, out: Attempt, runtime: Runtime) -> EpisodesRef:
    """Writes 0.txt … into its attempt; what an earlier attempt had written is carried over."""
    if spec.fail and not (spec.mend and Path(spec.mend).exists()):
        raise Transient("lost") if spec.fail == "transient" else ValueError("broken")
    runtime.report(Note(text="counting"))
    for step in range(spec.steps):
        out.check()
        found = next((path / f"{step}.txt" for path in out.earlier if (path / f"{step}.txt").exists()), None)
        text = found.read_text() if found else f"{out.number}\n"
        (out.path / f"{step}.txt").write_text(text)
        if not found:
            time.sleep(spec.pause_s)
        runtime.report(Progress(done=step + 1, total=spec.steps, unit="steps"))
    runtime.report(Summary(line=f"counted to {spec.steps}"))
    return EpisodesRef(uri=out.uri, fingerprint=out.fingerprint, num_episodes=spec.steps, num_frames=len(refs))
