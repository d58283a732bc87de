"""A lake with one small preprocessed and packed data set, fabricated; actions depend on state and pixels."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from data_lake.fragments import samples_schema
from data_lake.pack import pack_samples
from data_lake.packing import Packing
from data_lake.refs import CheckpointRef, PackedRef, PreprocessedRef, Ref
from data_lake.samples import view_column
from data_lake.store import Attempt, begin, slot_of
from model_core.embodiments import METAWORLD_SAWYER, layout_of
from model_core.specs import ExportSpec, InputSpec, PolicySpec, TrainSpec
from model_core.tokenizers import fit_tokenizer, open_tokenizer
from tasks.pack import token_count
from tasks.runtime import Report, Runtime
from tasks.specs import ExportStage, TrainStage

SIZE, DIM, EPISODES, LENGTH = 16, 4, 6, 8
POLICY = PolicySpec(
    inputs=InputSpec(views=("top", "corner"), image_size=SIZE, state="token", tokenizer="words", max_text_tokens=4),
    vision="conv",
    patch_size=8,
    vision_width=8,
    prefix_width=32,
    suffix_width=16,
    depth=2,
    num_heads=2,
    num_kv_heads=1,
    head_dim=8,
    action_horizon=4,
    normalisation="mean_std",
)
TRAIN = TrainSpec(
    num_steps=40,
    rows_per_step=2,
    num_draws=2,
    learning_rate=3e-3,
    warmup_steps=2,
    weight_decay=0.01,
    clip_norm=1.0,
    ema_decay=0.9,
    seed=0,
    attention="sdpa_segments",
    checkpoint_every=8,
)
STAGE = TrainStage(train=TRAIN, policy=POLICY)
EXPORT = ExportStage(export=ExportSpec(precision="fp8_block128", max_action_error=0.2, num_samples=6, denoise_steps=3))
INSTRUCTIONS = ("open the drawer", "press")
TOKENIZER = fit_tokenizer(INSTRUCTIONS, {"tokenizer": "words", "state": "token"})
TEXT = [open_tokenizer(TOKENIZER).encode(instruction, None) for instruction in INSTRUCTIONS]


@dataclass(frozen=True, kw_only=True, slots=True)
class SmallLake:
    runtime: Runtime
    preprocessed: PreprocessedRef
    packed: PackedRef
    reports: list[Report]

    def attempt(self, stage: str, spec: Any, *refs: Ref, version: int = 1) -> Attempt:
        begun = begin(
            slot_of(self.runtime.lake, stage, version, spec, refs), run_id="r", lease_s=60, on_wait=lambda _: None
        )
        assert begun is not None
        return begun

    def train_attempt(self, spec: TrainStage = STAGE) -> Attempt:
        return self.attempt("train", spec, self.preprocessed, self.packed)

    def train(self, train: Callable[..., CheckpointRef], spec: TrainStage = STAGE, **runtime: Any) -> CheckpointRef:
        """One attempt at the train stage; the slot is let go whatever happens."""
        out = self.train_attempt(spec)
        try:
            return train(spec, self.preprocessed, self.packed, out=out, runtime=replace(self.runtime, **runtime))
        finally:
            out.release()


def make(root: Path, *, heldout: int = 1) -> SmallLake:
    """`heldout` of the episodes at the end are held out of training."""
    preprocessed, packed = root / "lake" / "preprocess" / "p", root / "lake" / "pack" / "k"
    for folder in (preprocessed, packed):
        folder.mkdir(parents=True)
    columns = _columns(heldout)
    schema = samples_schema(list(POLICY.inputs.views), DIM)
    table = pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)
    lance.write_dataset(table, str(preprocessed / "samples.lance"))
    proprio, actions = _steps()
    steps = pa.table({"action": _lists(actions), "proprio": _lists(proprio)})
    lance.write_dataset(steps, str(preprocessed / "steps.lance"))
    (preprocessed / "card.json").write_text(json.dumps(_card(proprio, actions)))
    ids = np.flatnonzero(np.array(columns["split"]) == 0)
    tokens = token_count(POLICY)
    lengths = tokens.length(np.array(columns["num_views"]), np.array([len(t) for t in columns["text_tokens"]]))
    pack_samples(ids, lengths[ids], capacity=60, tokens=tokens).save(packed)
    return opened(root, heldout=heldout)


def opened(root: Path, *, heldout: int = 1) -> SmallLake:
    """What `make` made there."""
    reports: list[Report] = []
    packing = Packing.load(root / "lake" / "pack" / "k")
    return SmallLake(
        runtime=Runtime(lake=root / "lake", home=root / "home", run_id="r", threads=1, sink=reports.append),
        preprocessed=PreprocessedRef(
            uri="preprocess/p",
            fingerprint="p",
            num_samples=packing.num_samples,
            num_heldout=heldout * LENGTH,
            num_views=2,
        ),
        packed=PackedRef(
            uri="pack/k",
            fingerprint="k",
            num_samples=packing.num_samples,
            num_rows=packing.num_rows,
            tokens_per_row=packing.capacity,
            fill_rate=packing.fill_rate,
        ),
        reports=reports,
    )


def _steps() -> tuple[np.ndarray, np.ndarray]:
    """proprio and actions (EPISODES * LENGTH, DIM)."""
    proprio = np.random.default_rng(0).standard_normal((EPISODES * LENGTH, DIM)).astype(np.float32)
    return proprio, np.tanh(proprio[:, ::-1] * 0.5)


def _columns(heldout: int) -> dict[str, list[Any]]:
    proprio, _ = _steps()
    rows = range(EPISODES * LENGTH)
    episode = [row // LENGTH for row in rows]
    frame = [row % LENGTH for row in rows]
    has_corner = [number % 3 != 2 for number in episode]
    image = [np.full((SIZE, SIZE, 3), 5 * row, np.uint8).tobytes() for row in rows]
    return {
        "split": [int(number >= EPISODES - heldout) for number in episode],
        "episode_index": episode,
        "source_episode": episode,
        "frame_index": frame,
        "task_index": [number % 2 for number in episode],
        "first_step": list(rows),
        "num_steps": [LENGTH - each for each in frame],
        "proprio": list(proprio),
        "text_tokens": [TEXT[number % 2] for number in episode],
        "num_views": [1 + seen for seen in has_corner],
        view_column("top"): image,
        view_column("corner"): [pixels if seen else None for pixels, seen in zip(image, has_corner, strict=True)],
    }


def _card(proprio: np.ndarray, actions: np.ndarray) -> dict[str, Any]:
    inputs = {
        "views": list(POLICY.inputs.views),
        "image_size": SIZE,
        "sight": "full",
        "state": "token",
        "tokenizer": "words",
        "max_text_tokens": 4,
        "sentencepiece_model": None,
    }
    return {
        "inputs": inputs,
        "embodiment": "metaworld_sawyer",
        "embodiment_layout": layout_of(METAWORLD_SAWYER),
        "meaning": {"colour_order": "rgb", "image_orientation": "upright", "action_mode": "absolute"},
        "stats": {"proprio": _stats(proprio), "action": _stats(actions)},
        "tokenizer": TOKENIZER,
        "instructions": list(INSTRUCTIONS),
        "proprio_dim": DIM,
        "action_dim": DIM,
        "control_hz": 80.0,
    }


def _stats(rows: np.ndarray) -> dict[str, Any]:
    low, high = np.quantile(rows, [0.01, 0.99], axis=0)
    found = {"mean": rows.mean(0), "std": rows.std(0), "q01": low, "q99": high, "min": rows.min(0), "max": rows.max(0)}
    return {name: value.tolist() for name, value in found.items()} | {"count": len(rows)}


def _lists(rows: np.ndarray) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1), pa.float32()), rows.shape[1])
