"""Training as a job: submitted once, followed, and attached to again after whoever followed it has died.

The slot's job.json says which job runs. It is written before the job starts, so that nobody starts a second one.
"""

import json
import statistics
import time
import uuid
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from data_lake import files
from data_lake.decode_pool import cluster_for
from data_lake.files import LakePath
from data_lake.refs import CheckpointRef, PackedRef, PreprocessedRef
from data_lake.store import Attempt
from data_lake.words import counted
from errors import Transient, UserError
from lookup import lookup
from model_core.training.checkpoint import directory_of, find_fault
from tasks.launchers import LAUNCHERS, Handle, Job, JobStatus, Launcher
from tasks.metrics import Forwarder, Spool
from tasks.runtime import Note, Progress, Runtime, Summary
from tasks.specs import TrainStage
from tasks.spool import last_line, read_lines
from tasks.waiting import input_bound

WORKER = "tasks.workers.train_worker"
POLL_S = 0.5
SILENCE_S = 180.0  # a job whose beat has not changed for this long is taken for lost


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitted:
    """The job of a slot: its handle, and its output directory relative to the slot."""

    handle: Handle
    output: str

    @classmethod
    def read(cls, slot: Path) -> "Submitted | None":
        path = slot / "job.json"
        return cls(**json.loads(path.read_text())) if path.exists() else None

    def keep(self, slot: Path) -> None:
        files.replace(slot / "job.json", json.dumps(asdict(self), indent=1).encode())

    def launcher(self) -> Launcher:
        return lookup(LAUNCHERS, self.handle["launcher"], "launcher")


def train(
    spec: TrainStage, preprocessed: PreprocessedRef, packed: PackedRef, *, out: Attempt, runtime: Runtime
) -> CheckpointRef:
    """Train to the last step and return its checkpoint, by a new job or by the one that runs already.

    Raises `UserError` TRAIN-001 with the log's last lines when the job fails by itself, what the job itself raised
    as UserError, PACK-013 for a mixture of several robots, LOAD-002 as `cluster_for`, and `Transient` when it was
    killed or went silent: the next attempt resumes.
    """
    job = _running_job(spec, out, runtime)
    if job is None:
        _one_robot(runtime.path(preprocessed.uri))
        job = _submit(spec, preprocessed, packed, out, runtime)
    metrics = out.slot / job.output / "metrics.jsonl"
    final = directory_of(out.slot / job.output / "checkpoints", spec.train.num_steps)
    forwarder = _forwarder(job, spec, out, runtime).start()
    try:
        status = follow(job, spec.train.num_steps, out=out, runtime=runtime)
        if find_fault(final) is not None:
            raise _failure(job, status, out.slot)
    except KeyboardInterrupt:
        job.launcher().cancel(job.handle)
        raise
    finally:
        if left := forwarder.close():
            runtime.report(Note(text=left))
    counters = json.loads((final / "state.json").read_text())
    if waited := input_bound(read_lines(metrics), preprocessed, packed, runtime):
        runtime.report(Note(text=waited))
    runtime.report(Summary(line=_line(counters, metrics), cpu_seconds=status.cpu_seconds))
    return CheckpointRef(
        uri=f"{_slot_uri(out)}/{final.relative_to(out.slot).as_posix()}",
        fingerprint=out.fingerprint,
        step=counters["step"],
        samples_seen=counters["samples_seen"],
        loss=counters["loss"],
    )


def _one_robot(folder: LakePath) -> None:
    """Raises UserError PACK-013 for a mixture of several robots: the loader gives it, no policy here takes it yet."""
    card = json.loads(files.read_bytes(folder / "card.json"))
    if card["embodiment"] is None:
        raise UserError(
            "PACK-013",
            f"a policy trains on one robot, and the mixture has {len(card['robots'])}: {', '.join(card['robots'])}",
            where=", ".join(f"{each['name']}: {each['embodiment']}" for each in card["components"]),
            next_step="leave out of mixture.others what another robot recorded",
        )


def cancel_job(slot: Path) -> None:
    """End the job that builds the slot, if one does; its checkpoints stay, and the next attempt resumes from them."""
    if job := Submitted.read(slot):
        job.launcher().cancel(job.handle)


def running_jobs(mirror: Path) -> dict[str, str]:
    """Ids of this lake's training jobs that run from this machine, by slot (`train/fingerprint`)."""
    found = {}
    for path in sorted(mirror.glob("train/*/job.json")):
        job = Submitted.read(path.parent)
        if job and job.launcher().attach(job.handle).state == "running":
            found[f"train/{path.parent.name}"] = job.handle["job_id"]
    return found


def _running_job(spec: TrainStage, out: Attempt, runtime: Runtime) -> Submitted | None:
    """The job of this slot if it runs or has finished its work; None when a new one is due."""
    job = Submitted.read(out.slot)
    if job is None:
        return None
    if find_fault(directory_of(out.slot / job.output / "checkpoints", spec.train.num_steps)) is None:
        runtime.report(Note(text=f"job {job.handle['job_id'][:8]} has finished meanwhile"))
        return job
    status = job.launcher().attach(job.handle)
    if status.state == "running":
        runtime.report(Note(text=f"attached to job {job.handle['job_id'][:8]}, which still runs"))
        return job
    job.launcher().cancel(job.handle)  # ranks that outlived the rest
    return None


def _submit(
    spec: TrainStage, preprocessed: PreprocessedRef, packed: PackedRef, out: Attempt, runtime: Runtime
) -> Submitted:
    cluster = cluster_for(runtime.decode, runtime.ray_address)
    directory = out.path / "job"
    directory.mkdir(parents=True, exist_ok=True)
    described = asdict(spec) | {
        "preprocessed": str(runtime.path(preprocessed.uri)),
        "assets": str(runtime.local(preprocessed.uri, tables=False)),
        "packed": str(runtime.path(packed.uri)),
        "output": str(out.path),
        "earlier": [str(path) for path in out.earlier],
        "threads": runtime.threads,
        "micro_batch_rows": runtime.micro_batch_rows,
        "ray_address": cluster,
    }
    files.replace(directory / "job.json", json.dumps(described, indent=1).encode())
    name = "torchrun" if runtime.launcher == "local" and runtime.processes > 1 else runtime.launcher
    launcher: Launcher = lookup(LAUNCHERS, name, "launcher")
    job = Job(
        job_id=uuid.uuid4().hex,
        module=WORKER,
        arguments=("--job", str(directory / "job.json")),
        directory=directory,
        processes=runtime.processes,
        threads=runtime.threads,
    )
    out.check()
    submitted = Submitted(handle=launcher.plan(job), output=out.path.relative_to(out.slot).as_posix())
    submitted.keep(out.slot)
    submitted = replace(submitted, handle=launcher.submit(job))
    submitted.keep(out.slot)
    return submitted


def follow(
    job: Submitted,
    num_steps: int,
    *,
    out: Attempt,
    runtime: Runtime,
    poll_s: float = POLL_S,
    silence_s: float = SILENCE_S,
) -> JobStatus:
    """Report progress until the job has ended; returns how. Raises `Transient` when it is silent for too long.

    Silence is counted on this process's own clock from the last change seen, so that neither a clock that jumps
    nor a pause of this process ends a job.
    """
    metrics = out.slot / job.output / "metrics.jsonl"
    last_beat, changed, shown = "", time.monotonic(), -1
    while (status := job.launcher().attach(job.handle)).state == "running":
        out.check()
        if status.beat != last_beat:
            last_beat, changed = status.beat, time.monotonic()
        elif time.monotonic() - changed > silence_s:
            job.launcher().cancel(job.handle)
            raise Transient(f"the training job gave no sign of life for {silence_s:.0f} s and was cancelled")
        if (line := last_line(metrics)) and line["step"] != shown:
            shown = line["step"]
            runtime.report(_progress(line, num_steps))
        time.sleep(poll_s)
    return status


def _progress(line: dict[str, Any], num_steps: int) -> Progress:
    shown = {"loss": line["loss"], "samples/s": line["samples_per_s"], "input wait": line["input_wait"]}
    figures = {name: float(value) for name, value in shown.items() if value is not None}
    return Progress(done=line["step"] + 1, total=num_steps, unit="steps", figures=figures)


def _failure(job: Submitted, status: JobStatus, slot: Path) -> Exception:
    """What to raise for a job that ended without its last checkpoint."""
    note = slot / job.output / "job" / "error.json"
    log = slot / job.output / "job" / "log.txt"
    if note.exists():
        told = json.loads(note.read_text())
        if told["transient"]:
            return Transient(told["message"])
        return UserError(
            told["code"],
            told["message"],
            where=told["where"],
            done=told["done"],
            next_step=told["next_step"] or f"read {log}",
        )
    code = status.exit_code
    if code is None or code < 0 or job.handle["launcher"] == "torchrun":
        how = "was lost" if code is None else f"ended with status {code}"
        return Transient(f"the training job {how}; the next attempt resumes from its last checkpoint ({log})")
    tail = "\n".join(status.log_tail.splitlines()[-12:])
    return UserError(
        "TRAIN-001",
        f"the training job ended with status {code}:\n{tail}",
        where=str(log),
        next_step="mend the cause and run again: training resumes from its last checkpoint",
    )


def _forwarder(job: Submitted, spec: TrainStage, out: Attempt, runtime: Runtime) -> Forwarder:
    spool = Spool(
        path=out.slot / job.output / "metrics.jsonl",
        slot=f"train/{out.fingerprint}",
        title=f"{runtime.label or 'train'} {out.fingerprint[:4]}",
        settings=asdict(spec),
    )
    return Forwarder(spool, lake=runtime.lake, home=runtime.home)


def _slot_uri(out: Attempt) -> str:
    """The slot, relative to the lake: out.uri is its attempts/n."""
    return out.uri.rpartition("/attempts/")[0]


def _line(counters: dict[str, Any], metrics: Path) -> str:
    speeds = [line["samples_per_s"] for line in read_lines(metrics) if line["samples_per_s"] is not None]
    speed = f" · {statistics.median(speeds):,.0f} samples/s" if speeds else ""
    learnt = f"{counted(counters['step'], 'step')} · {counted(counters['samples_seen'], 'sample')}"
    return f"{learnt} · loss {counters['loss']:.4f}{speed}"
