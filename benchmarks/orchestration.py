"""What orchestration costs: ten no-op stages as plain Python, as bare Prefect tasks and as vlaloop stages.

All three run in one process against one server, interleaved; the same work is proved by a digest. The share of
the tiny loop that is not spent inside stages comes from the events of its newest complete run in the lake.
"""

import hashlib
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE

from benchmarks.reporting import Target, result, spread
from data_lake.refs import EpisodesRef, Ref
from data_lake.runs import runs
from data_lake.store import Attempt
from flows.places import Places
from flows.server import prefect_settings
from tasks.build import Stage
from tasks.catalogue import LOOP
from tasks.events import read_events
from tasks.runtime import Runtime

NUM_LOOP = 10
ROUNDS = 12
PACKAGES = ("prefect",)


@dataclass(frozen=True, kw_only=True, slots=True)
class NoOpSpec:
    """`nonce` makes every round's slots new."""

    index: int
    nonce: str


def work(index: int) -> str:
    """The same small work for all three."""
    return hashlib.sha256(str(index).encode()).hexdigest()


def no_op(spec: NoOpSpec, *refs: Ref, out: Attempt, runtime: Runtime) -> EpisodesRef:
    """A stage that writes one small file, as every real one does."""
    (out.path / "digest").write_text(work(spec.index))
    return EpisodesRef(uri=out.uri, fingerprint=out.fingerprint, num_episodes=spec.index, num_frames=len(refs))


NO_OP = Stage(fn="benchmarks.orchestration:no_op", version=1, retries=0)


@task(cache_policy=NO_CACHE, persist_result=False)
def bare(index: int, path: Path) -> str:
    """A Prefect task without anything of ours."""
    path.write_text(work(index))
    return path.read_text()


def plain_round(folder: Path, runtime: Runtime) -> list[str]:
    for index in range(NUM_LOOP):
        (folder / str(index)).write_text(work(index))
    return [(folder / str(index)).read_text() for index in range(NUM_LOOP)]


@flow
def bare_round(folder: Path, runtime: Runtime) -> list[str]:
    return [bare(index, folder / str(index)) for index in range(NUM_LOOP)]


@flow
def stage_round(folder: Path, runtime: Runtime) -> list[str]:
    refs = [NO_OP(NoOpSpec(index=index, nonce=folder.name), runtime=runtime) for index in range(NUM_LOOP)]
    return [(runtime.path(ref.uri) / "digest").read_text() for ref in refs]


CONTENDERS: dict[str, Callable[[Path, Runtime], list[str]]] = {
    "plain": plain_round,
    "bare_prefect": bare_round,
    "vlaloop": stage_round,
}


def main(lake: Path, home: Path) -> dict[str, Any]:
    """The object of `bench orchestration`."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        clock = time.monotonic()
        where = Places(lake=root / "lake", home=root / "home")
        with prefect_settings(where):
            runtime = Runtime(lake=where.lake, home=where.home, run_id="bench", label="bench")
            samples, digests, server_s = _measure(root, runtime, clock)
    assert len(set(digests.values())) == 1, f"the contenders did not do the same work: {digests}"
    medians = {name: statistics.median(values) for name, values in samples.items()}
    share, note = share_outside_stages(lake, home)
    return result(
        "orchestration",
        [
            Target(
                name="added_ms_per_stage",
                value=round(medians["vlaloop"] - medians["bare_prefect"], 2),
                target=40,
                op="<=",
            ),
            Target(name="share_of_tiny", value=share, target=0.02, op="<=", note=note),
        ],
        {
            name: {"ms_per_stage": spread(values), "digest": digests[name], "rounds": ROUNDS, "stages": NUM_LOOP}
            for name, values in samples.items()
        }
        | {"server_start": {"seconds": round(server_s, 2)}},
        samples,
        PACKAGES,
    )


def _measure(root: Path, runtime: Runtime, clock: float) -> tuple[dict[str, list[float]], dict[str, str], float]:
    """ms per stage of every round after a warm-up, digest of the results, seconds until the server answered."""
    samples: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    digests: dict[str, str] = {}
    server_s = 0.0
    for round_index in range(ROUNDS + 1):
        for name, run in CONTENDERS.items():
            folder = root / f"{name}-{uuid.uuid4().hex}"
            folder.mkdir()
            start = time.perf_counter()
            texts = run(folder, runtime)
            elapsed_ms = (time.perf_counter() - start) * 1000 / NUM_LOOP
            digests[name] = hashlib.sha256("".join(texts).encode()).hexdigest()[:16]
            if round_index:
                samples[name].append(elapsed_ms)
        if not round_index:
            server_s = time.monotonic() - clock
    return samples, digests, server_s


def share_outside_stages(lake: Path, home: Path) -> tuple[float | None, str]:
    """(loop wall - sum of stage seconds) / loop wall of the newest run that built every stage of `tiny`."""
    complete = []
    for run in runs(lake):
        events = read_events(home, run.run_id)
        built = [event for event in events if event["event"] == "built"]
        started = [event["t"] for event in events if event["event"] == "start"]
        is_tiny = any(event["event"] == "run" and event.get("recipe") == "tiny" for event in events)
        if is_tiny and {event["stage"] for event in built} == set(LOOP) and len(started) == len(LOOP):
            wall = built[-1]["t"] - started[0]
            complete.append((built[-1]["t"], (wall - sum(event["seconds"] for event in built)) / wall, run.run_id))
    if not complete:
        return None, f"no complete run of tiny in {lake}: ./vlaloop run tiny"
    _, share, run_id = max(complete)
    return round(share, 4), f"run {run_id[:8]}"
