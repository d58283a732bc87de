"""The same loop as `tiny` in a minute or two: for tests; a third of its episodes have one camera only."""

from dataclasses import replace

from flows.recipes.tiny import COLLECT, SCENE, TASKS
from flows.recipes.tiny import RECIPE as TINY

EPISODES_PER_TASK = 6
SMOKE_TASKS = TASKS[:2]
SMOKE_SCENE = replace(SCENE, max_steps=120)

RECIPE = replace(
    TINY,
    name="smoke",
    collect=replace(
        COLLECT, scene=SMOKE_SCENE, tasks=SMOKE_TASKS, episodes_per_task=EPISODES_PER_TASK, one_view_every=3
    ),
    ingest=replace(TINY.ingest, dataset="smoke"),
    preprocess=replace(TINY.preprocess, heldout_episodes=(5, 11)),
    pack=replace(TINY.pack, tokens_per_row=368),
    train=replace(TINY.train, num_steps=60, rows_per_step=2, warmup_steps=5, ema_decay=0.9, checkpoint_every=10),
    export=replace(TINY.export, max_action_error=0.2, num_samples=8),
    evaluate=replace(
        TINY.evaluate, suite="metaworld-smoke", scene=SMOKE_SCENE, tasks=SMOKE_TASKS, episodes_per_task=2, block_size=2
    ),
    gate=replace(TINY.gate, min_score=0.0, min_task_score=0.0, margin=1.0),  # it is about the loop, not skill
)
