"""Open loop on held-out samples: how far predicted chunks are from recorded ones, beside two baselines."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from data_lake.mixture import MixedSamples, open_samples
from data_lake.packing import TokenCount
from data_lake.refs import EvalReport, ExportRef, PreprocessedRef
from data_lake.samples import Batch, SampleTable
from data_lake.store import Attempt
from errors import UserError
from model_core.embodiments import from_layout
from model_core.sim.actors import ActsInChunks, chunk_noise
from model_core.specs import EvaluateSpec
from model_core.types import Observation
from tasks.runtime import Progress, Runtime, Summary

HELD_OUT = 1
SMALLEST_STD = 1e-6  # of a dimension that varies in training
REPORT = "report.json"


def evaluate_offline(
    spec: EvaluateSpec, export: ExportRef, preprocessed: PreprocessedRef, *, out: Attempt, runtime: Runtime
) -> EvalReport:
    """Mean absolute error of action chunks on held-out episodes, in standard deviations of the training actions.

    Only dimensions that vary in training count, and only steps inside an episode. The score is the smaller
    baseline's error over the policy's: above 1, the policy beats both. Raises UserError EVAL-004 when nothing
    is held out or nothing varies.
    """
    from model_core.policies.policy import Policy  # torch: closed loop needs it in workers only

    policy: ActsInChunks = Policy.load(runtime.local(export.uri))
    errors = OpenLoop(open_samples(runtime.path(preprocessed.uri)), policy, spec)
    for num_done in errors.run():
        out.check()
        runtime.report(Progress(done=num_done, total=len(errors.ids), unit="samples"))
    return _report(spec, errors, out, runtime)


class OpenLoop:
    """Errors of a policy and of the baselines on all held-out samples, by contender and step of the chunk.

    Raises UserError EVAL-004 when nothing is held out or no action dimension varies in training.
    """

    def __init__(self, table: SampleTable | MixedSamples, policy: ActsInChunks, spec: EvaluateSpec) -> None:
        self.ids = table.ids(HELD_OUT)
        if not len(self.ids):
            raise UserError("EVAL-004", "no episode is held out", next_step="name some in preprocess.heldout_episodes")
        self._table = table
        self._policy = policy
        self._spec = spec
        self._horizon = policy.action_shape[0]
        self._robot = from_layout(table.card["embodiment_layout"])
        self._task_index = table.column("task_index")
        self.num_episodes = len(np.unique(table.column("episode_index")[self.ids]))
        tables = table.tables if isinstance(table, MixedSamples) else [table]
        actions = np.concatenate([training_actions(each) for each in tables])
        self._mean_A, std_A = actions.mean(0), actions.std(0)
        self.varies_A = std_A > SMALLEST_STD * np.maximum(1.0, np.abs(self._mean_A))
        if not self.varies_A.any():
            raise UserError("EVAL-004", "no action dimension varies in the training episodes")
        self._std_A = np.where(self.varies_A, std_A, 1.0)
        names = ("policy", "current state", "mean action")
        self._sums = {name: np.zeros(self._horizon) for name in names}
        self._counts = np.zeros(self._horizon)

    def run(self) -> Iterator[int]:
        """Blocks of block_size samples, the last one padded; yields how many samples are done."""
        size = self._spec.block_size
        for start in range(0, len(self.ids), size):
            chosen = self.ids[start : start + size]
            self._add(np.resize(chosen, size), len(chosen))
            yield start + len(chosen)

    def _add(self, ids: np.ndarray, num_real: int) -> None:
        """Predict the chunks of the samples `ids`, of which all after `num_real` are padding."""
        batch = self._table.batch(0, [ids], TokenCount(tokens_per_view=0, state_tokens=0, action_horizon=self._horizon))
        noise = np.stack([chunk_noise(self._spec.seed, int(each), 0, *self._policy.action_shape) for each in ids])
        predicted = self._policy.act(self._observations(batch), noise, self._spec.denoise_steps)
        contenders = {
            "policy": predicted,
            "current state": self._held_state(batch.proprio),
            "mean action": np.broadcast_to(self._mean_A, batch.actions.shape),
        }
        mask = batch.action_mask[:num_real]
        self._counts += mask.sum(0)
        for name, chunk in contenders.items():
            scaled = np.abs(chunk[:num_real] - batch.actions[:num_real]) / self._std_A
            self._sums[name] += (scaled[..., self.varies_A].mean(-1) * mask).sum(0)

    def means(self) -> dict[str, float]:
        return {name: float(sums.sum() / self._counts.sum()) for name, sums in self._sums.items()}

    def by_step(self) -> dict[str, list[float]]:
        return {name: (sums / np.maximum(1, self._counts)).tolist() for name, sums in self._sums.items()}

    def _held_state(self, proprio_NP: np.ndarray) -> np.ndarray:
        """Stay where you are: the current state as a command, the mean where no state answers to an action."""
        commands = np.tile(self._mean_A, (len(proprio_NP), 1))
        for dim, source in enumerate(self._robot.action_from_state):
            if source >= 0:
                commands[:, dim] = proprio_NP[:, source]
        return np.repeat(commands[:, None], self._horizon, axis=1)

    def _observations(self, batch: Batch) -> list[Observation]:
        views: list[dict[str, np.ndarray]] = [{} for _ in batch.sample_ids]
        for image, sample, slot in zip(batch.images, batch.image_sample, batch.image_view, strict=True):
            views[sample][self._table.views[slot]] = image
        texts = [self._table.card["instructions"][self._task_index[each]] for each in batch.sample_ids]
        return [
            Observation(views=shown, proprio=proprio, instruction=text)
            for shown, proprio, text in zip(views, batch.proprio, texts, strict=True)
        ]


def training_actions(table: SampleTable) -> np.ndarray:
    """Raw actions (T, A) of every step of the training episodes, each once."""
    episode, first = table.column("episode_index"), table.column("first_step")
    last = first + table.column("num_steps")
    column = table.steps.to_table(columns=["action"])["action"].combine_chunks()
    actions = column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1).astype(np.float64)
    learnt = table.column("split") != HELD_OUT
    chosen = [learnt & (episode == each) for each in np.unique(episode[learnt])]
    spans = [(first[own].min(), last[own].max()) for own in chosen]
    return np.concatenate([actions[start:end] for start, end in spans])


def _report(spec: EvaluateSpec, errors: OpenLoop, out: Attempt, runtime: Runtime) -> EvalReport:
    means = errors.means()
    error = means.pop("policy")
    score = min(means.values()) / max(error, 1e-12)
    described: dict[str, Any] = {
        "kind": "open_loop",
        "suite": spec.suite,
        "score": score,
        "error": error,
        "baselines": means,
        "unit": "standard deviations of the training actions, mean over the dimensions that vary",
        "by_step": errors.by_step(),
        "dims": {"all": len(errors.varies_A), "varying": int(errors.varies_A.sum())},
        "num_samples": len(errors.ids),
        "num_episodes": errors.num_episodes,
        "protocol": {"denoise_steps": spec.denoise_steps, "seed": spec.seed, "block_size": spec.block_size},
        "episodes": [],
        "videos": [],
    }
    Path(out.path / REPORT).write_text(json.dumps(described, indent=1))
    rivals = " · ".join(f"{name} {value:.3f}" for name, value in means.items())
    table = [{"contender": name, "error": round(value, 4)} for name, value in {"policy": error, **means}.items()]
    line = f"error {error:.3f} of training deviations on {len(errors.ids)} held-out samples · {rivals}"
    runtime.report(Summary(line=line, table=table))
    return EvalReport(
        uri=out.uri,
        fingerprint=out.fingerprint,
        suite=spec.suite,
        simulator="",
        num_episodes=errors.num_episodes,
        score=score,
        tasks=(),
        collisions=0,
        limit_hits=0,
        non_finite=0,
        error=error,
        baselines=tuple(means.items()),
    )
