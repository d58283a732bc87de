"""The default loop: four Meta-World tasks, a 1.3 M parameter policy, about ten minutes on two cores."""

from data_lake.specs import IngestSpec, PackSpec, PreprocessSpec
from flows.recipe import LoopRecipe
from model_core.specs import (
    CameraSpec,
    CollectSpec,
    EvaluateSpec,
    ExportSpec,
    InputSpec,
    PolicySpec,
    SceneSpec,
    TaskSpec,
    TrainSpec,
)
from tasks.specs import GateSpec

SCENE = SceneSpec(
    simulator="metaworld",
    embodiment="metaworld_sawyer",
    cameras=(
        CameraSpec(view="top", camera="topview", height=128, width=128, crop=(4, 32, 64, 64)),
        CameraSpec(view="corner", camera="corner4", height=64, width=64, flip="vertical"),
    ),
    shadows=False,
    reflections=False,
    antialiasing=0,
    show_goal_sites=False,  # they would give the task away
    render_every=4,
    max_steps=200,
)

TASKS = (
    TaskSpec(name="button-press-topdown-v3", instruction="press the button from the top"),
    TaskSpec(name="drawer-open-v3", instruction="open the drawer"),
    TaskSpec(name="faucet-open-v3", instruction="turn the faucet counterclockwise"),
    TaskSpec(name="faucet-close-v3", instruction="turn the faucet clockwise"),  # same scene, opposite goal
)

EPISODES_PER_TASK = 90
HELDOUT = tuple(task * EPISODES_PER_TASK + last for task in range(len(TASKS)) for last in (88, 89))

COLLECT = CollectSpec(
    scene=SCENE,
    tasks=TASKS,
    episodes_per_task=EPISODES_PER_TASK,
    first_seed=0,
    held_noise=0.3,
    hold_steps=6,
    white_noise=0.15,
    max_random_start=8,
)

RECIPE = LoopRecipe(
    name="tiny",
    collect=COLLECT,
    ingest=IngestSpec(dataset="tiny", embodiment="metaworld_sawyer"),
    preprocess=PreprocessSpec(sample_stride=4, heldout_episodes=HELDOUT),
    policy=PolicySpec(
        inputs=InputSpec(views=("top", "corner"), image_size=64, state="token", tokenizer="words", max_text_tokens=8),
        vision="conv",
        patch_size=16,
        vision_width=64,
        prefix_width=128,
        suffix_width=64,
        depth=4,
        num_heads=4,
        num_kv_heads=4,
        head_dim=32,
        action_horizon=8,
        normalisation="mean_std",
    ),
    pack=PackSpec(tokens_per_row=736),
    train=TrainSpec(
        num_steps=1200,
        rows_per_step=4,
        num_draws=2,
        learning_rate=1e-3,
        warmup_steps=50,
        weight_decay=0.01,
        clip_norm=1.0,
        ema_decay=0.99,
        seed=0,
        attention="sdpa_segments",
        checkpoint_every=200,
    ),
    export=ExportSpec(precision="fp8_block128", max_action_error=0.05, num_samples=64, denoise_steps=5),
    evaluate=EvaluateSpec(
        suite="metaworld-4",
        scene=SCENE,
        tasks=TASKS,
        episodes_per_task=30,
        first_seed=100_000,
        execution_horizon=4,  # as often as there is a fresh image; 8 succeeds less (docs/log.md)
        denoise_steps=5,
        block_size=15,
        seed=0,
    ),
    gate=GateSpec(min_score=0.7, min_task_score=0.5, margin=0.05),
)
