"""A made-up run: stage functions that write what the real ones do, at once, with figures chosen for looks."""

import io
import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import av
import numpy as np

from data_lake.refs import (
    CheckpointRef,
    DatasetRef,
    EpisodesRef,
    EvalReport,
    ExportRef,
    ModelVersionRef,
    PackedRef,
    PreprocessedRef,
    Ref,
    SourceRef,
    TaskResult,
)
from data_lake.store import Attempt, now
from flows import recipe as recipes
from flows.loop import closed_loop
from model_core.policies.policy import build_model
from model_core.quantize.export import write_export
from model_core.transforms import InputTransform
from tasks.build import Stage, build
from tasks.promotion import Move, audit_log
from tasks.runtime import Runtime, Summary
from tests.model_core.samples import SPEC, card_of

TASKS = (("button-press-topdown-v3", 27, 3.1), ("drawer-open-v3", 30, 2.4), ("faucet-open-v3", 27, 3.6))
EVIL = '</script><b title="x">&'  # no text of a run may reach the page as markup


def run(lake: Path, home: Path, name: str = "tiny", **stages: Callable[..., Ref]) -> tuple[Runtime, ModelVersionRef]:
    """Build every stage of the recipe `name`, with the functions below or those given by name."""
    runtime = Runtime(lake=lake, home=home, run_id="run-1", label=name)
    loop = recipes.resolve(recipes.load(name))
    source = SourceRef(uri="", fingerprint="feedbeef00112233", path="/recordings", num_files=31, num_bytes=2_211_840)

    def call(stage: Stage, spec: Any, *refs: Ref) -> Ref:
        module = stages[stage.name].__module__ if stage.name in stages else __name__
        return build(
            Stage(fn=f"{module}:{stage.name}", version=stage.version, retries=0), spec, *refs, runtime=runtime
        ).ref

    return runtime, closed_loop(loop, source, call)


def _write(out: Attempt, name: str, value: Any) -> None:
    (out.path / name).write_text(json.dumps(value))


def collect(spec: Any, *, out: Attempt, runtime: Runtime) -> EpisodesRef:
    (out.path / "episodes").mkdir()
    _write(out, "episodes/info.json", {"fps": 80})
    runtime.report(Summary(line="248 episodes · 4 tasks · 2 cameras 64×64"))
    return EpisodesRef(uri=f"{out.uri}/episodes", fingerprint=out.fingerprint, num_episodes=248, num_frames=18_412)


def ingest(spec: Any, source: Ref, *, out: Attempt, runtime: Runtime) -> DatasetRef:
    finding = {"code": "LAKE-007", "severity": "error", "episode": 3, "camera": None, "row": None,
               "file": "data/chunk-000/episode_000003.parquet", "message": f"parquet file without footer {EVIL}",
               "fix": "copy the file again"}  # fmt: skip
    warning = {**finding, "code": "LAKE-021", "severity": "warning", "episode": None, "file": "meta/info.json",
               "message": "total_frames says 400, the files hold 412"}  # fmt: skip
    _write(out, "findings.json", [finding, warning, {**warning, "file": "meta/tasks.jsonl"}])
    left_out = {"episode": 3, "file": finding["file"], "lasting": True, "done": "left out", "findings": [finding]}
    _write(out, "quarantine.json", [left_out])
    manifest = runtime.lake / "datasets" / spec.ingest.dataset / "manifests/000001.json"
    manifest.parent.mkdir(parents=True)  # no tables: nothing here reads them
    manifest.touch()
    runtime.report(Summary(line="247 ok · 1 quarantined · 18,350 frames"))
    return DatasetRef(uri=out.uri, fingerprint="d" + out.fingerprint[1:], dataset=spec.ingest.dataset, version=1,
                      num_episodes=247, num_quarantined=1, num_frames=18_350, num_findings=3)  # fmt: skip


def preprocess(spec: Any, dataset: DatasetRef, *, out: Attempt, runtime: Runtime) -> PreprocessedRef:
    _write(out, "card.json", card_of())
    runtime.report(Summary(line="4,570 samples · 140 held out"))
    return PreprocessedRef(uri=out.uri, fingerprint=out.fingerprint, num_samples=4570, num_heldout=140, num_views=2)


def pack(spec: Any, preprocessed: PreprocessedRef, *, out: Attempt, runtime: Runtime) -> PackedRef:
    fills = [[0.91, 4], [0.955, 30], [0.977, 162], [1.0, 89]]
    _write(out, "packed.json", {"tokens_per_row": 880, "fill_by_row": fills})
    runtime.report(Summary(line="4,430 samples → 285 rows · fill 97.8 %"))
    return PackedRef(uri=out.uri, fingerprint=out.fingerprint, num_samples=4430, num_rows=285, tokens_per_row=880,
                     fill_rate=0.978)  # fmt: skip


def train(spec: Any, preprocessed: Ref, packed: Ref, *, out: Attempt, runtime: Runtime) -> CheckpointRef:
    noise = np.random.default_rng(0).normal(0, 1, 1200)
    lines = [
        {"step": step, "loss": 0.55 * math.exp(-step / 160) + 0.13 + 0.012 * noise[step - 1], "lr": 1e-3,
         "samples_per_s": 402 + 9 * noise[step - 1], "input_wait": 0.011}
        for step in range(1, 1201)
    ]  # fmt: skip
    (out.path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (out.path / "checkpoints" / "step-001200").mkdir(parents=True)
    _write(out, "checkpoints/step-001200/manifest.json", {})
    runtime.report(Summary(line="1,200 steps · loss 0.127"))
    return CheckpointRef(uri=f"{out.uri}/checkpoints/step-001200", fingerprint=out.fingerprint, step=1200,
                         samples_seen=76_800, loss=0.127)  # fmt: skip


def export(spec: Any, checkpoint: Ref, preprocessed: Ref, *, out: Attempt, runtime: Runtime) -> ExportRef:
    parts = [f"language.{layer}.{name}" for layer in range(4) for name in ("qkv", "out", "mlp_in", "mlp_out")]
    layers = [
        {"name": f"{name}.weight", "shape": [128, 128], "relative": 0.02 + 0.002 * ((index * 7) % 5), "largest": 0.05}
        for index, name in enumerate(parts)
    ]
    _write(out, "error.json", {"layers": layers, "action_error": 0.0041})
    policy = {"policy": asdict(SPEC), "card": card_of()}
    transform = InputTransform(policy["card"], SPEC, out.path)
    weights = build_model(transform, "sdpa_segments").state_dict()
    write_export(out.path, weights, policy, precision="none", is_language=lambda name: False, assets={})
    runtime.report(Summary(line="language part 49.9 % smaller · action error 0.4 % of noise"))
    return ExportRef(uri=out.uri, fingerprint=out.fingerprint, precision="fp8_block128", num_bytes=1_734_208,
                     action_error=0.0041, language_saving=0.499, total_saving=0.312)  # fmt: skip


def evaluate(spec: Any, export: Ref, preprocessed: Ref, *, out: Attempt, runtime: Runtime) -> EvalReport:
    if spec.evaluate.scene is None:
        return _offline(spec, out, runtime)
    (out.path / "videos").mkdir()
    episodes = [
        _film(out, *each) for each in ((0, True, 100_003, 2.1), (1, True, 100_001, 1.9), (2, False, 100_009, 2.5))
    ]
    tasks = tuple(
        TaskResult(task=name, n=30, k=k, safe=k - 1, low=wilson(k, 30)[0], high=wilson(k, 30)[1], seconds=seconds)
        for name, k, seconds in TASKS
    )
    events = {"collisions": (3, 7), "limit_hits": (12, 80), "non_finite": (0, 0)}
    told = {
        "kind": "closed_loop", "suite": spec.evaluate.suite, "score": 84 / 90, "interval": wilson(84, 90),
        "safety": {kind: {"episodes": number, "steps": steps} for kind, (number, steps) in events.items()},
        "protocol": {"control_hz": 80, "seeds": [100_000, 30], "execution_horizon": 8, "denoise_steps": 5},
        "episodes": episodes, "videos": [episode["video"] for episode in episodes],
    }  # fmt: skip
    _write(out, "report.json", told)
    runtime.report(Summary(line="84/90 · mean success 0.93"))
    return EvalReport(uri=out.uri, fingerprint=out.fingerprint, suite=spec.evaluate.suite, simulator="5c1e77aa90b2d413",
                      num_episodes=90, score=84 / 90, tasks=tasks, collisions=3, limit_hits=12, non_finite=0,
                      error=None, baselines=())  # fmt: skip


def _film(out: Attempt, task: int, success: bool, seed: int, seconds: float) -> dict[str, Any]:
    kind = "success" if success else "failure"
    name = f"videos/{kind}-{TASKS[task][0]}-{task}-{seed}.mp4"
    (out.path / name).write_bytes(video(task, success))
    sentence = ("press the button from the top", "open the drawer", f"turn the faucet {EVIL}")[task]
    return {"task": TASKS[task][0], "instruction": sentence, "seed": seed, "success": success, "safe": True,
            "seconds": seconds, "video": name}  # fmt: skip


def _offline(spec: Any, out: Attempt, runtime: Runtime) -> EvalReport:
    told = {
        "kind": "open_loop", "error": 0.41, "baselines": {"current state": 0.58, "mean action": 0.83},
        "unit": "standard deviations of the training actions, mean over the dimensions that vary",
        "by_step": {"policy": [0.3 + 0.015 * step for step in range(16)]},
        "dims": {"all": 44, "varying": 19}, "num_samples": 312, "episodes": [], "videos": [],
    }  # fmt: skip
    _write(out, "report.json", told)
    runtime.report(Summary(line="error 0.41 against 0.58 and 0.83"))
    return EvalReport(uri=out.uri, fingerprint=out.fingerprint, suite=spec.evaluate.suite, simulator="", num_episodes=1,
                      score=0.58 / 0.41, tasks=(), collisions=0, limit_hits=0, non_finite=0, error=0.41,
                      baselines=(("current state", 0.58), ("mean action", 0.83)))  # fmt: skip


def register(spec: Any, export: Ref, report: EvalReport, *, out: Attempt, runtime: Runtime) -> ModelVersionRef:
    alias = spec.gate.max_alias
    table = [{"check": "score", "value": report.score, "needs": f">= {spec.gate.min_score}", "passed": True}]
    decision = "first version, all gates passed" if alias == "champion" else "this recipe may be challenger at most"
    runtime.report(Summary(line=f"{spec.name} v1 → {alias}  ({decision})", table=table))
    moved = Move(action=alias, version=1, fingerprint=out.fingerprint, before=None, who="r", why=decision, at=now())
    audit_log(runtime.lake, spec.name).append(1, moved)
    return ModelVersionRef(uri=out.uri, fingerprint=out.fingerprint, name=spec.name, version=1, alias=alias,
                           accepted=True, decision=decision)  # fmt: skip


def wilson(k: int, n: int, z: float = 1.96) -> tuple[float, float]:
    centre, spread = (k + z * z / 2) / (n + z * z), z * math.sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
    return centre - spread, centre + spread


def video(colour: int, reaches: bool) -> bytes:
    """A second of a square that moves towards a disc, and gets there or not."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=20)
        stream.width = stream.height = 128
        stream.pix_fmt = "yuv420p"
        for frame in range(20):
            for packet in stream.encode(av.VideoFrame.from_ndarray(_picture(colour, frame / (19 if reaches else 40)))):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    return buffer.getvalue()


def _picture(colour: int, way: float) -> np.ndarray:
    y, x = np.mgrid[:128, :128]
    image = np.full((128, 128, 3), (206, 201, 192), np.uint8)
    image[(x - 100) ** 2 + (y - 36) ** 2 < 150] = ((190, 60, 50), (60, 120, 70), (70, 90, 170))[colour]
    left, top = int(14 + 76 * way), int(96 - 70 * way)
    image[top : top + 18, left : left + 18] = (60, 62, 66)
    return image
