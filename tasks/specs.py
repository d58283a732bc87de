"""What each stage is given: sections of a recipe, put together. Standard library only.

The names of the sections are the names that people write (`policy.action_horizon`), so the reasons that
`plan` prints read as a recipe does.
"""

from dataclasses import dataclass, field

from data_lake.specs import LABEL, NEUTRAL, IngestSpec, PackSpec, PreprocessSpec, Spec
from model_core.specs import CollectSpec, EvaluateSpec, ExportSpec, InputSpec, PolicySpec, TrainSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class GateSpec(Spec):
    """When a policy may become champion. min_score: of the evaluation. min_task_score: of its weakest task.

    margin: how much lower than the champion's score still passes (sampling noise).
    max_alias: the most that this recipe may get; `challenger` where no simulator has proved it.
    """

    min_score: float
    min_task_score: float
    margin: float
    max_collisions: int | None = None
    max_alias: str = "champion"


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectStage(Spec):
    collect: CollectSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestStage(Spec):
    ingest: IngestSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyInputs(Spec):
    """The part of the policy that preprocessing depends on; `policy.action_horizon` is not in it."""

    inputs: InputSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class PreprocessStage(Spec):
    preprocess: PreprocessSpec
    policy: PolicyInputs


@dataclass(frozen=True, kw_only=True, slots=True)
class MixStage(Spec):
    """What is mixed are its inputs; names: what people call them, in order."""

    names: tuple[str, ...] = field(metadata=LABEL)


@dataclass(frozen=True, kw_only=True, slots=True)
class PackStage(Spec):
    """weights: of the components of a mixture, in order; none where there is no mixture."""

    pack: PackSpec
    policy: PolicySpec
    weights: tuple[float, ...] = field(default=(), metadata=NEUTRAL)


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainStage(Spec):
    train: TrainSpec
    policy: PolicySpec


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportStage(Spec):
    export: ExportSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluateStage(Spec):
    evaluate: EvaluateSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class RegisterStage(Spec):
    """name: of the registered model; it is where the version lives, hence identity here."""

    name: str
    gate: GateSpec
