"""The mix stage: several data sets stand for one, weights change only what is packed, and it trains for real."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from data_lake.held_out import FILE
from data_lake.loader import Loader
from data_lake.mixture import open_samples
from data_lake.packing import Packing
from data_lake.refs import PackedRef, PreprocessedRef, Ref
from data_lake.sources.snapshot import snapshot
from data_lake.specs import CameraSlot, IngestSpec, PackSpec, PreprocessSpec, ReadSpec
from errors import UserError
from model_core.embodiments import Embodiment
from model_core.specs import InputSpec, PolicySpec
from tasks import catalogue
from tasks.build import build
from tasks.offline import OpenLoop
from tasks.runtime import Runtime
from tasks.specs import IngestStage, MixStage, PackStage, PolicyInputs, PreprocessStage
from tasks.train import train
from tests.tasks import small_lake
from tests.tasks.small_lake import EPISODES, LENGTH, POLICY, STAGE, SmallLake
from tests.tasks.test_offline import SUITE, Fixed

PUSHT = Embodiment(
    name="pusht",
    cameras=(),
    state_names=("x", "y"),
    action_names=("x", "y"),
    state_units=("px",) * 2,
    action_units=("px",) * 2,
    control_hz=10.0,
    delta_mask=(False,) * 2,
    action_from_state=(0, 1),
    action_low=None,
    action_high=None,
)
TOTAL, LEARNT = EPISODES * LENGTH, (EPISODES - 1) * LENGTH
SPEC = MixStage(names=("a", "b"))


@pytest.fixture(scope="module", autouse=True)
def tracking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path_factory.mktemp('tracking')}/mlflow.db")
        yield


@pytest.fixture
def lake(tmp_path: Path) -> tuple[SmallLake, tuple[PreprocessedRef, PreprocessedRef]]:
    """The small lake, and its samples a second time, in other words and with ids of their own."""
    made = small_lake.make(tmp_path)
    folder = made.runtime.lake / "preprocess"
    other = small_lake.make(tmp_path / "other").runtime.lake / "preprocess" / "p"
    card = json.loads((other / "card.json").read_text())
    card["tokenizer"]["words"] = ["shut" if word == "open" else word for word in card["tokenizer"]["words"]]
    card["instructions"] = ["shut the drawer", "press"]
    for each in (folder / "p", other):
        (each / FILE).write_text(json.dumps({"trains_on": {}, "holds_out": {}}))
    for each, named in ((folder / "p", json.loads((folder / "p" / "card.json").read_text())), (other, card)):
        (each / "card.json").write_text(json.dumps(named | {"cameras": {}, "declared": named["meaning"]}))
    other.rename(folder / "q")
    return made, (made.preprocessed, replace(made.preprocessed, uri="preprocess/q", fingerprint="q"))


def built(lake: SmallLake, refs: tuple[Ref, ...], weights: tuple[float, ...]) -> tuple[PreprocessedRef, PackedRef]:
    mixed = build(catalogue.mix, SPEC, *refs, runtime=lake.runtime).ref
    spec = PackStage(pack=PackSpec(tokens_per_row=60), policy=POLICY, weights=weights)
    packed = build(catalogue.pack, spec, mixed, runtime=lake.runtime).ref
    assert isinstance(mixed, PreprocessedRef) and isinstance(packed, PackedRef)
    return mixed, packed


def test_two_data_sets_train_as_one(lake: tuple[SmallLake, tuple[PreprocessedRef, PreprocessedRef]]) -> None:
    small, refs = lake
    mixed, packed = built(small, refs, (1.0, 0.5))
    assert (mixed.num_samples, mixed.num_heldout) == (2 * refs[0].num_samples, 2 * refs[0].num_heldout)
    folder = small.runtime.path(mixed.uri)
    samples = open_samples(folder)
    words = samples.card["tokenizer"]["words"]
    assert {"open", "shut"} <= set(words) and words[:2] == ["<pad>", "<unk>"]
    loader = Loader(folder, Packing.load(small.runtime.path(packed.uri)), seed=0, rows_per_step=1)
    seen = np.concatenate([loader.batch(step).sample_ids for step in range(2 * loader.packing.num_rows)])
    counts = np.bincount(seen, minlength=2 * TOTAL)
    assert counts.tolist() == [2] * LEARNT + [0] * LENGTH + [1] * LEARNT + [0] * LENGTH
    batch = loader.table.batch(0, [np.array([0, TOTAL])], loader.packing.tokens)
    assert [words[each] for each in batch.text_tokens] == ["open", "the", "drawer", "shut", "the", "drawer"]
    short = replace(STAGE, train=replace(STAGE.train, num_steps=12))
    ref = replace(small, preprocessed=mixed, packed=packed).train(train, short)
    losses = [json.loads(line)["loss"] for line in small.runtime.path(ref.uri).joinpath("history.jsonl").open()]
    assert len(losses) == ref.step == 12 and np.mean(losses[-3:]) < np.mean(losses[:3])
    policy = json.loads((small.runtime.path(ref.uri) / "policy.json").read_text())
    assert [each["name"] for each in policy["card"]["components"]] == ["a", "b"]
    assert policy["card"]["stats"]["action"]["count"] == 2 * LEARNT


def test_weights_mix_nothing_anew(lake: tuple[SmallLake, tuple[PreprocessedRef, PreprocessedRef]]) -> None:
    small, refs = lake
    (mixed, packed), (again, other) = (built(small, refs, weights) for weights in ((1.0, 1.0), (1.0, 2.0)))
    assert mixed == again and packed.fingerprint != other.fingerprint
    assert packed.num_samples == other.num_samples == 2 * LEARNT and other.num_rows > packed.num_rows


def test_what_another_component_holds_out_is_not_trained_on(
    lake: tuple[SmallLake, tuple[PreprocessedRef, PreprocessedRef]],
) -> None:
    small, refs = lake
    for ref, split in zip(refs, ("trains_on", "holds_out"), strict=True):
        noted = {"trains_on": {}, "holds_out": {}} | {split: {"c0ffee": 3}}
        (small.runtime.path(ref.uri) / FILE).write_text(json.dumps(noted))
    with pytest.raises(UserError, match="PACK-011.*a trains on 1 recording that b holds out"):
        built(small, refs, (1.0, 1.0))


def test_held_out_episodes_of_all_components_are_judged(
    lake: tuple[SmallLake, tuple[PreprocessedRef, PreprocessedRef]],
) -> None:
    small, refs = lake
    mixed = build(catalogue.mix, SPEC, *refs, runtime=small.runtime).ref
    errors = OpenLoop(open_samples(small.runtime.path(mixed.uri)), Fixed([0, 0, 0, 0]), SUITE)
    assert (len(errors.ids), errors.num_episodes) == (2 * LENGTH, 2)


def recorded(source: Path, runtime: Runtime, ingest: IngestSpec, preprocess: PreprocessSpec, policy: PolicySpec) -> Ref:
    snapped = snapshot(source, runtime.home / "snapshots")
    dataset = build(catalogue.ingest, IngestStage(ingest=ingest), snapped, runtime=runtime).ref
    spec = PreprocessStage(preprocess=preprocess, policy=PolicyInputs(inputs=policy.inputs))
    return build(catalogue.preprocess, spec, dataset, runtime=runtime).ref


def test_a_planar_pusher_and_a_humanoid_in_one_batch(shared_data: Path, tmp_path: Path) -> None:
    """Two dimensions and no video beside 44 and one camera: declared, padded and masked; training refuses them."""
    runtime = Runtime(lake=tmp_path / "lake", home=tmp_path / "home", run_id="r")
    inputs = InputSpec(views=("ego",), image_size=16, state="token", tokenizer="words", max_text_tokens=32)
    policy = replace(POLICY, inputs=inputs, action_horizon=4)
    humanoid = IngestSpec(
        dataset="gr1", embodiment="gr1", read=ReadSpec(ignore_tasks=("valid",), action_mode="absolute")
    )
    pusher = IngestSpec(dataset="pusht", embodiment="tests.tasks.test_mix:PUSHT")
    stride = 40
    refs = (
        recorded(
            shared_data / "lerobot-v2.0-gr1-picknplace",
            runtime,
            humanoid,
            PreprocessSpec(sample_stride=stride, cameras=(CameraSlot(slot="ego", camera="ego_view"),)),
            policy,
        ),
        recorded(
            shared_data / "lerobot-v3.0-pusht-mini",
            runtime,
            pusher,
            PreprocessSpec(sample_stride=stride, cameras=(CameraSlot(slot="ego", camera=None),)),
            policy,
        ),
    )
    mixed = build(catalogue.mix, MixStage(names=("gr1", "pusht")), *refs, runtime=runtime).ref
    spec = PackStage(pack=PackSpec(tokens_per_row=60), policy=policy, weights=(1.0, 1.0))
    packed = build(catalogue.pack, spec, mixed, runtime=runtime).ref
    folder = runtime.path(mixed.uri)
    loader = Loader(folder, Packing.load(runtime.path(packed.uri)), seed=0, rows_per_step=loader_rows(runtime, packed))
    batch = loader.batch(0)
    widths = np.where(batch.component == 0, 44, 2)
    assert sorted(batch.sample_ids.tolist()) == list(range(len(batch.sample_ids))) and set(widths) == {2, 44}
    assert (batch.action_dim_mask.sum(1) == widths).all() and (batch.proprio_mask.sum(1) == widths).all()
    assert not batch.actions[batch.component == 1][:, :, 2:].any() and np.isfinite(batch.actions).all()
    assert np.array_equal(np.bincount(batch.image_sample, minlength=len(widths)), batch.component == 0)
    robots = loader.table.card["robots"]
    assert [len(robots[name]["stats"]["proprio"]["std"]) for name in ("gr1", pusher.embodiment)] == [44, 2]
    assert [each["cameras"] for each in loader.table.card["components"]] == [{"ego": "ego_view"}, {"ego": None}]
    assert isinstance(mixed, PreprocessedRef) and isinstance(packed, PackedRef)
    lake = SmallLake(runtime=runtime, preprocessed=mixed, packed=packed, reports=[])
    with pytest.raises(UserError, match=r"(?s)PACK-013.*one robot.*gr1"):
        lake.train(train, replace(STAGE, policy=policy))


def loader_rows(runtime: Runtime, packed: Ref) -> int:
    """All rows of an epoch in one step."""
    return Packing.load(runtime.path(packed.uri)).num_rows
