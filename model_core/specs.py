"""What to build of a policy and of a world, as frozen values. Standard library only.

A field marked `label` is outside identity; one marked `neutral` is left out of it while at its default,
so that adding it rebuilds nothing.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

LABEL = {"label": True}
NEUTRAL = {"neutral": True}


class Spec:
    """Unknown fields are refused at every level when a recipe is parsed."""

    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


# --- the policy -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class InputSpec(Spec):
    """What a policy is shown; all that preprocessing must know of it.

    views: canonical camera slots, in token order; an episode may lack some.
    image_size: views are resized to a square of this many pixels, aspect kept, padded with black.
    sight: `grey` replaces every view by flat grey, in training and in acting: the control for sight.
    state: proprio as one continuous `token`, as digits in the `text`, or `none`.
    sentencepiece_model: file of the SentencePiece model when tokenizer is `sentencepiece`.
    """

    views: tuple[str, ...]
    image_size: int
    sight: Literal["full", "grey"] = field(default="full", metadata=NEUTRAL)
    state: Literal["token", "text", "none"]
    tokenizer: Literal["words", "sentencepiece"]
    max_text_tokens: int
    sentencepiece_model: str | None = field(default=None, metadata=NEUTRAL)


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicySpec(Spec):
    """A π0.5-shaped policy: a prefix (views, text, state) and a flow-matching action suffix.

    policy: a name in POLICIES. vision: `conv` stem or a `siglip` transformer of vision_depth layers; both
    give (image_size / patch_size)² tokens a view. Attention heads are shared by both streams:
    num_heads x head_dim. normalisation: of proprio and actions, from training statistics.
    """

    policy: str = "pi05"
    inputs: InputSpec
    vision: Literal["conv", "siglip"]
    patch_size: int
    vision_width: int
    vision_depth: int = 0
    prefix_width: int
    suffix_width: int
    depth: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    mlp_ratio: int = 4
    action_horizon: int
    normalisation: Literal["quantile", "mean_std"]

    @property
    def tokens_per_view(self) -> int:
        return (self.inputs.image_size // self.patch_size) ** 2


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainSpec(Spec):
    """One training run. rows_per_step: packed rows a step, over all ranks; the loss is the mean over their
    samples. num_draws: noise and time draws per sample on one shared prefix. attention: a name in ATTENTION.
    """

    num_steps: int
    rows_per_step: int
    num_draws: int
    learning_rate: float
    warmup_steps: int
    weight_decay: float
    clip_norm: float
    ema_decay: float
    seed: int
    attention: str
    checkpoint_every: int = field(metadata=LABEL)


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportSpec(Spec):
    """precision: `fp8_block128` stores the language part as float8 e4m3 in 128x128 blocks (or `none`).

    The export fails when its action error on held-out samples is above max_action_error.
    """

    precision: Literal["fp8_block128", "none"]
    max_action_error: float
    num_samples: int
    denoise_steps: int


# --- the world --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class CameraSpec(Spec):
    """One view of a simulator: rendered at (height, width), flipped if asked, then cut to `crop`
    (top, left, height, width)."""

    view: str
    camera: str
    height: int
    width: int
    flip: Literal["none", "vertical"] = "none"
    crop: tuple[int, int, int, int] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SceneSpec(Spec):
    """simulator: a name in SIMULATORS. Shared by collect and evaluate, so that both see the same pixels.

    render_every: control steps between rendered images; frames between hold the last one.
    """

    simulator: str
    embodiment: str
    cameras: tuple[CameraSpec, ...]
    shadows: bool
    reflections: bool
    antialiasing: int
    show_goal_sites: bool
    render_every: int
    max_steps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskSpec(Spec):
    """A goal of the simulator and the sentence that asks for it."""

    name: str
    instruction: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectSpec(Spec):
    """Scripted expert demonstrations. Episodes are the first `episodes_per_task` successes from seed
    `first_seed` on. The executed action is the expert's plus held noise (std `held_noise` for `hold_steps`
    steps, half of the time) plus white noise; the recorded label is the clean one.

    one_view_every: every n-th episode records the first camera only (0: none does).
    """

    scene: SceneSpec
    tasks: tuple[TaskSpec, ...]
    episodes_per_task: int
    first_seed: int
    held_noise: float
    hold_steps: int
    white_noise: float
    max_random_start: int
    one_view_every: int = field(default=0, metadata=NEUTRAL)


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluateSpec(Spec):
    """A suite. `instruction` of a task may differ from the collected one (controls).

    scene None: open loop on the held-out episodes. block_size: episodes that share one inference batch.
    success_tasks: per task the goal that counts, where it is not the task itself.
    policy: `export` acts with the export, `random` with uniform actions (a control).
    """

    suite: str
    scene: SceneSpec | None
    tasks: tuple[TaskSpec, ...]
    episodes_per_task: int
    first_seed: int
    execution_horizon: int
    denoise_steps: int
    block_size: int
    seed: int
    num_videos: int = field(default=2, metadata=LABEL)
    actor: Literal["export", "random"] = field(default="export", metadata=NEUTRAL)
