"""Real humanoid recordings (GR1, one camera, 44 joints): trained on some episodes, judged on held-out ones.

Run with `--set ingest.source=PATH`. Without a simulator the policy registers as challenger only.
"""

from dataclasses import replace

from data_lake.specs import IngestSpec, PackSpec, PreprocessSpec, ReadSpec
from flows.recipe import LoopRecipe
from flows.recipes.tiny import RECIPE as TINY
from model_core.specs import EvaluateSpec, InputSpec
from tasks.specs import GateSpec

RECIPE = LoopRecipe(
    name="gr1",
    collect=None,
    ingest=IngestSpec(
        dataset="gr1",
        embodiment="gr1",
        read=ReadSpec(ignore_tasks=("valid",), action_mode="absolute"),
    ),
    preprocess=PreprocessSpec(sample_stride=1, heldout_episodes=(4,)),
    policy=replace(
        TINY.policy,
        inputs=InputSpec(views=("ego_view",), image_size=64, state="token", tokenizer="words", max_text_tokens=24),
        action_horizon=16,
    ),
    pack=PackSpec(tokens_per_row=864),
    train=replace(TINY.train, num_steps=400),
    export=TINY.export,
    evaluate=EvaluateSpec(
        suite="gr1-heldout",
        scene=None,
        tasks=(),
        episodes_per_task=0,
        first_seed=0,
        execution_horizon=16,
        denoise_steps=5,
        block_size=32,
        seed=0,
    ),
    gate=GateSpec(min_score=1.0, min_task_score=0.0, margin=0.05, max_alias="challenger"),
)
