"""One rank of a training run, put together: loader, policy and trainer, with checkpoints and metrics as hooks."""

import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from data_lake.files import lake_path
from data_lake.loader import Loader
from data_lake.packing import Packing
from data_lake.samples import Batch
from model_core.policies.pi05.inputs import to_training_inputs
from model_core.policies.policy import build_model, policy_from_json
from model_core.specs import TrainSpec
from model_core.training import checkpoint
from model_core.training.state import StepRecord, TrainState, fresh_state
from model_core.training.trainer import Hook, StepInput, StepTiming, fit
from model_core.transforms import InputTransform
from model_core.types import TorchBatch
from tasks.spool import read_lines
from tasks.workers.parts import cut_rows

CPU = torch.device("cpu")
log = logging.getLogger(__name__)

FAIL_AT_STEP = "VLALOOP_FAIL_AT_STEP"  # tests only: the job fails once after this many steps


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where one rank writes and from where it may resume. Only rank 0 writes."""

    output: Path
    earlier: tuple[Path, ...]
    rank: int
    world: int

    @property
    def checkpoints(self) -> Path:
        return self.output / "checkpoints"

    def newest_checkpoint(self) -> Path | None:
        return checkpoint.newest_complete(
            [self.checkpoints, *(path / "checkpoints" for path in self.earlier)], log.warning
        )


def run(job: dict[str, Any], *, rank: int, world: int) -> None:
    """Train as `job` says (tasks/train.py writes it), from the newest complete checkpoint of any attempt."""
    torch.set_num_threads(job["threads"])
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if torch.cuda.is_available() else CPU
    if world > 1:
        dist.init_process_group("gloo" if device == CPU else "nccl", rank=rank, world_size=world)
    spec = TrainSpec(**job["train"])
    place = Place(output=Path(job["output"]), earlier=tuple(map(Path, job["earlier"])), rank=rank, world=world)
    packing = Packing.load(lake_path(job["packed"]))
    loader = Loader(
        lake_path(job["preprocessed"]),
        packing,
        seed=spec.seed,
        rows_per_step=spec.rows_per_step,
        ray_address=job["ray_address"],
    )
    torch.manual_seed(spec.seed)
    bound = bind(job["policy"], loader.table.card, Path(job["assets"]), spec.attention, device)
    source = StepSource(loader=loader, bound=bound, rows_per_part=job["micro_batch_rows"], place=place)
    state = fresh_state(bound.model, spec)
    found = place.newest_checkpoint()
    log.info("rank %d of %d, %d parameters, from %s", rank, world, _size(bound.model), found or "the beginning")
    hooks = [_fail_once(place)]
    if rank == 0:
        hooks.insert(0, MetricLines(place.output / "metrics.jsonl", found))
    fit(
        state,
        spec,
        source.steps,
        action_shape=bound.action_shape,
        resume_from=found,
        hooks=hooks,
        save=_saver(place, bound) if rank == 0 else _nothing,
    )
    if world > 1:
        dist.barrier()  # rank 0 may still be saving
        dist.destroy_process_group()


@dataclass(frozen=True, kw_only=True, slots=True)
class StepSource:
    """A loader's batches as this rank's parts of each step."""

    loader: Loader
    bound: "Bound"
    rows_per_part: int
    place: Place

    def steps(self, first: int, last: int) -> Iterator[StepInput]:
        """Steps [first, last), each with the sample ids of all ranks."""
        for batch in self.loader.batches(first, last, self.place.rank, self.place.world):
            yield StepInput(
                step=batch.step,
                sample_ids=np.concatenate(self.loader.rows(batch.step)),
                parts=[self.bound.collate(part) for part in cut_rows(batch, self.rows_per_part)],
            )


class MetricLines:
    """The hook that writes metrics.jsonl, a line per step, flushed; `cores`: how many this process kept busy. A resumed
    run starts it with the lines of the steps before, so that this file alone tells of every step."""

    def __init__(self, path: Path, resumed_from: Path | None) -> None:
        earlier = _lines_before(resumed_from) if resumed_from else []
        self._stream = path.open("w")
        self._stream.writelines(json.dumps(line) + "\n" for line in earlier)
        self._stream.flush()
        self._seen = time.perf_counter(), time.process_time()

    def __call__(self, _state: TrainState, record: StepRecord, timing: StepTiming) -> None:
        (before_s, used_s), self._seen = self._seen, (time.perf_counter(), time.process_time())
        cores = (self._seen[1] - used_s) / (self._seen[0] - before_s)
        speed = {"samples_per_s": record.num_samples / timing.total_s, "input_wait": timing.input_s / timing.total_s}
        line = checkpoint.to_json(record) | speed | {"cores": cores, "time": time.time()}
        self._stream.write(json.dumps(line) + "\n")
        self._stream.flush()


def _lines_before(resumed_from: Path) -> list[dict[str, Any]]:
    """Lines of the steps in a checkpoint: those that its run wrote; what it had not written, without speeds."""
    history = [json.loads(line) for line in (resumed_from / "history.jsonl").read_text().splitlines()]
    unknown = {"samples_per_s": None, "input_wait": None, "cores": None, "time": time.time()}
    lines = {line["step"]: line | unknown for line in history}
    lines |= {
        line["step"]: line for line in read_lines(resumed_from.parents[1] / "metrics.jsonl") if line["step"] in lines
    }
    return [lines[step] for step in sorted(lines)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bound:
    """A fresh policy that fits the data, and what turns the loader's batches into its own."""

    model: nn.Module
    device: torch.device
    policy_json: dict[str, Any]
    assets: dict[str, bytes]
    transform: InputTransform

    @property
    def action_shape(self) -> tuple[int, int]:
        """(H, A) of an action chunk."""
        return self.transform.policy.action_horizon, self.transform.card["action_dim"]

    def collate(self, batch: Batch) -> TorchBatch:
        return to_training_inputs(batch, self.transform, self.device)


def _size(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def bind(
    policy: dict[str, Any], card: dict[str, Any], folder: Path, attention: str, device: torch.device = CPU
) -> Bound:
    """The policy that a spec (as JSON) describes, for data with this card; `folder` holds its tokenizer, if any."""
    transform = InputTransform(card, policy_from_json(policy), folder)
    file = card["tokenizer"].get("file")
    assets = {file: (folder / file).read_bytes()} if file else {}
    model = build_model(transform, attention).to(device)
    return Bound(
        model=model, device=device, policy_json={"policy": policy, "card": card}, assets=assets, transform=transform
    )


def _saver(place: Place, bound: Bound) -> Callable[[TrainState], None]:
    def save(state: TrainState) -> None:
        checkpoint.save(place.checkpoints, state, policy=bound.policy_json, assets=bound.assets)
        checkpoint.prune(place.checkpoints)

    return save


def _nothing(_state: TrainState) -> None:
    """Ranks other than 0 hold the same state and save nothing."""


def _fail_once(place: Place) -> Hook:
    """The hook of FAIL_AT_STEP: raises there unless an attempt of this slot did so before."""
    asked = os.environ.get(FAIL_AT_STEP)
    mark = "failed-at-step"
    done = any((path / mark).exists() for path in (place.output, *place.earlier))

    def hook(state: TrainState, _record: StepRecord, _timing: StepTiming) -> None:
        if asked is not None and not done and state.step == int(asked):
            (place.output / mark).touch()
            raise RuntimeError(f"told to fail once at step {asked} by {FAIL_AT_STEP}")

    return hook
